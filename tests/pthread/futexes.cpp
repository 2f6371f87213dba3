// SPDX-License-Identifier: Apache-2.0
// A program that calls the kernel by syscall(2), and mostly for futex(2): run natively, and as it
// is under `strata pthread`, where its threads wait without the kernel. Status 0 if all is right.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <thread>
#include <vector>

#include "c_librarys.h"
#include "checks.hpp"

namespace {

using word = std::atomic<std::uint32_t>;
static_assert(sizeof(word) == 4);

constexpr int threads = 12;
constexpr long far_s = 3600;

// What the kernel answers, or the error's number, negative.
template <class... A>
[[gnu::noinline]] long answer(long number, A... arguments) {
  const long a = syscall(number, arguments...);
  return a == -1 ? -errno : a;
}
long wait(word& w, std::uint32_t expected, const timespec* time = nullptr,
          int flag = FUTEX_PRIVATE_FLAG) {
  return answer(SYS_futex, &w, FUTEX_WAIT | flag, expected, time);
}
long wait_until(word& w, std::uint32_t expected, const timespec* until, std::uint32_t kinds,
                int flags = FUTEX_PRIVATE_FLAG) {
  return answer(SYS_futex, &w, FUTEX_WAIT_BITSET | flags, expected, until, nullptr, kinds);
}
long wake(word& w, int count, int flag = FUTEX_PRIVATE_FLAG) {
  return answer(SYS_futex, &w, FUTEX_WAKE | flag, count);
}

timespec after(clockid_t clock, long s, long ns) {
  timespec t;
  clock_gettime(clock, &t);
  t.tv_sec += s + (t.tv_nsec + ns) / 1'000'000'000;
  t.tv_nsec = (t.tv_nsec + ns) % 1'000'000'000;
  return t;
}

// Until `wakes` has woken so many, one after the other if need be.
template <class F>
long count_until(long wanted, F wakes) {
  long all = 0;
  while (all < wanted) {
    const long n = wakes();
    if (n < 0) return n;
    all += n;
    if (n == 0) sched_yield();
  }
  return all;
}

struct group {
  std::vector<std::thread> all;
  template <class F>
  explicit group(int count, F f) {
    for (int i = 0; i < count; ++i) all.emplace_back(f);
  }
  ~group() {
    for (std::thread& t : all) t.join();
  }
};

// Where not, waits in what was shared end without a reason, and nobody counts them.
bool who_shares_is_told() { return access("/proc/thread-self/pagemap", R_OK) == 0; }

// ---- answers that come at once, or with time ----

void answers() {
  word w{5};
  alignas(4) std::array<char, 8> bytes{};
  const timespec none{0, 0};
  const timespec little{0, 1'000'000};
  const timespec negative{-1, 0};
  const timespec too_much{0, 1'000'000'000};
  for (const int flag : {FUTEX_PRIVATE_FLAG, 0}) {
    SAME(wait(w, 4, nullptr, flag), -EAGAIN);
    SAME(wait(w, 4, &little, flag), -EAGAIN);
    SAME(wait(w, 5, &none, flag), -ETIMEDOUT);
    SAME(wait(w, 5, &little, flag), -ETIMEDOUT);
    SAME(wait(w, 5, &negative, flag), -EINVAL);
    SAME(wait(w, 5, &too_much, flag), -EINVAL);
    for (const clockid_t clock : {CLOCK_MONOTONIC, CLOCK_REALTIME}) {
      const int flags = flag | (clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0);
      const timespec passed = after(clock, -1, 0);
      const timespec soon = after(clock, 0, 1'000'000);
      const timespec far = after(clock, far_s, 0);
      SAME(wait_until(w, 5, &passed, FUTEX_BITSET_MATCH_ANY, flags), -ETIMEDOUT);
      SAME(wait_until(w, 5, &soon, 1, flags), -ETIMEDOUT);
      SAME(wait_until(w, 4, &far, 1, flags), -EAGAIN);
      SAME(wait_until(w, 5, &far, 0, flags), -EINVAL);
    }
    SAME(wake(w, 1, flag), 0);
    SAME(answer(SYS_futex, &w, FUTEX_WAKE_BITSET | flag, 1, nullptr, nullptr, 0), -EINVAL);
    SAME(answer(SYS_futex, bytes.data() + 1, FUTEX_WAIT | flag, 0, &little), -EINVAL);
    SAME(answer(SYS_futex, nullptr, FUTEX_WAIT | flag, 0, &little), -EFAULT);
    SAME(answer(SYS_futex, &w, 99 | flag, 0, nullptr), -ENOSYS);
  }
  errno = 77;
  (void)syscall(SYS_futex, &w, FUTEX_WAKE_PRIVATE, 1);
  SAME(errno, 77);
}

// ---- wake-ups ----

// Each that waits is woken once and told so, by as many calls as it takes.
void counts(word& w, int flag) {
  std::atomic<int> woken{0};
  const auto body = [&] { woken += wait(w, 0, nullptr, flag) == 0 ? 1 : 0; };
  {
    const group all(threads, body);
    SAME(count_until(threads, [&] { return wake(w, 1, flag); }), threads);
  }
  SAME(woken, threads);
  {
    const group all(threads, body);
    SAME(count_until(threads,
                     [&] {
                       const long n = wake(w, 2, flag);
                       SAME(n > 2, false);
                       return n;
                     }),
         threads);
  }
  SAME(woken, 2 * threads);
  {
    const group all(threads, body);
    SAME(count_until(threads, [&] { return wake(w, INT_MAX, flag); }), threads);
  }
  SAME(woken, 3 * threads);
  SAME(wake(w, INT_MAX, flag), 0);
}

// Long before the time that they would wait.
void in_time(int flag) {
  word w{0};
  const group all(threads, [&] {
    const timespec time{far_s, 0};
    SAME(wait(w, 0, &time, flag), 0);
    const timespec until = after(CLOCK_REALTIME, far_s, 0);
    SAME(wait_until(w, 0, &until, 1, flag | FUTEX_CLOCK_REALTIME), 0);
  });
  SAME(count_until(2 * threads, [&] { return wake(w, 1, flag); }), 2 * threads);
}

// Whoever changes the word first and wakes then is missed by nobody.
void turns(int flag) {
  constexpr std::uint32_t rounds = 3000;
  constexpr std::uint32_t players = 3;
  word ball{0};
  std::atomic<std::uint32_t> next_player{0};
  const group all(players, [&] {
    const std::uint32_t me = next_player++;
    for (std::uint32_t turn = me; turn < rounds; turn += players) {
      for (std::uint32_t seen; (seen = ball.load()) != turn;) {
        const long a = wait(ball, seen, nullptr, flag);
        SAME(a == 0 || a == -EAGAIN, true);
      }
      ball = turn + 1;
      wake(ball, INT_MAX, flag);
    }
  });
}

void kinds() {
  word w{0};
  std::atomic<int> first_left{0};
  std::atomic<int> second_left{0};
  const auto wake_those = [&](std::uint32_t those) {
    return answer(SYS_futex, &w, FUTEX_WAKE_BITSET_PRIVATE, 1, nullptr, nullptr, those);
  };
  const group firsts(threads, [&] {
    SAME(wait_until(w, 0, nullptr, 1), 0);
    ++first_left;
  });
  const group seconds(threads, [&] {
    SAME(wait_until(w, 0, nullptr, 6), 0);
    ++second_left;
  });
  SAME(count_until(threads, [&] { return wake_those(2); }), threads);
  while (second_left != threads) sched_yield();
  SAME(wake_those(4), 0);
  SAME(first_left, 0);
  SAME(count_until(threads, [&] { return wake(w, 1); }), threads);
}

void moves(int flag) {
  word from{0};
  word to{0};
  const group all(threads, [&] { SAME(wait(from, 0, nullptr, flag), 0); });
  const auto move = [&](int wakes, int moved, std::uint32_t expected) {
    return answer(SYS_futex, &from, FUTEX_CMP_REQUEUE | flag, wakes, static_cast<long>(moved), &to,
                  expected);
  };
  SAME(move(1, INT_MAX, 1), -EAGAIN);
  SAME(move(-1, 1, 0), -EINVAL);
  SAME(count_until(1, [&] { return move(1, 0, 0); }), 1);
  SAME(count_until(threads - 1, [&] { return move(0, INT_MAX, 0); }), threads - 1);
  SAME(wake(from, INT_MAX, flag), 0);
  SAME(wake(to, 1, flag), 1);
  SAME(answer(SYS_futex, &to, FUTEX_REQUEUE | flag, 1, static_cast<long>(INT_MAX), &from),
       threads - 2);
  SAME(wake(to, INT_MAX, flag), 0);
  SAME(wake(from, INT_MAX, flag), threads - 3);
}

void operations() {
  word w{0};
  word second{40};
  const group all(threads, [&] { SAME(wait(w, 0), 0); });
  long calls = 0;
  SAME(count_until(threads,
                   [&] {
                     ++calls;
                     return answer(SYS_futex, &w, FUTEX_WAKE_OP_PRIVATE, 1, 1L, &second,
                                   FUTEX_OP(FUTEX_OP_ADD, 2, FUTEX_OP_CMP_EQ, 40));
                   }),
       threads);
  SAME(second, 40 + 2 * calls);
}

// ---- kernel threads ----

void* await_word(void* argument) {
  return wait(*static_cast<word*>(argument), 0) == 0 ? argument : nullptr;
}

struct to_wake {
  word& w;
  long count;
};
void* wake_so_many(void* argument) {
  const auto& what = *static_cast<const to_wake*>(argument);
  const bool all = count_until(what.count, [&] { return wake(what.w, INT_MAX); }) == what.count;
  return all ? argument : nullptr;
}

void kernel_threads() {
  constexpr int kernels = 3;
  word w{0};
  const auto create = C_LIBRARYS(pthread_create);
  const auto join = C_LIBRARYS(pthread_join);
  std::array<pthread_t, kernels> waiters{};
  std::atomic<int> woken{0};
  {
    const group ours(threads, [&] { woken += wait(w, 0) == 0 ? 1 : 0; });
    for (pthread_t& t : waiters) SAME(create(&t, nullptr, &await_word, &w), 0);
    SAME(count_until(threads + kernels, [&] { return wake(w, 4); }), threads + kernels);
  }
  for (const pthread_t t : waiters) {
    void* was_woken = nullptr;
    SAME(join(t, &was_woken), 0);
    SAME(was_woken == &w, true);
  }
  SAME(woken, threads);

  // Woken by one of those.
  to_wake all{w, threads};
  pthread_t waker{};
  {
    const group ours(threads, [&] { SAME(wait(w, 0), 0); });
    SAME(create(&waker, nullptr, &wake_so_many, &all), 0);
  }
  void* woke_all = nullptr;
  SAME(join(waker, &woke_all), 0);
  SAME(woke_all == &all, true);
}

// ---- processes ----

struct table {
  word ball;
  word left;
};

// Two processes hand a word that they share back and forth; who waits here is a thread.
void hand_over(table& shared) {
  constexpr std::uint32_t rounds = 20;
  const auto play = [&](std::uint32_t first) {
    for (std::uint32_t turn = first; turn < rounds; turn += 2) {
      for (std::uint32_t seen; (seen = shared.ball.load()) != turn;) {
        const long a = wait(shared.ball, seen, nullptr, 0);
        if (a != 0 && a != -EAGAIN) return false;
      }
      shared.ball = turn + 1;
      wake(shared.ball, INT_MAX, 0);
    }
    return true;
  };
  const pid_t child = fork();
  if (child == 0) _exit(play(1) ? 0 : 1);
  std::thread([&] { SAME(play(0), true); }).join();
  int status = -1;
  SAME(waitpid(child, &status, 0), child);
  SAME(status, 0);
  SAME(shared.ball, rounds);

  // Wake-ups of another process that leave the word as it is.
  const pid_t waker = fork();
  if (waker == 0) {
    while (shared.left == 0) {
      wake(shared.ball, INT_MAX, 0);
      sched_yield();
    }
    _exit(0);
  }
  std::thread([&] { SAME(wait(shared.ball, rounds, nullptr, 0), 0); }).join();
  shared.left = 1;
  SAME(waitpid(waker, &status, 0), waker);
  SAME(status, 0);
}

void processes() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  constexpr int both = PROT_READ | PROT_WRITE;
  void* at = mmap(nullptr, page, both, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  hand_over(*static_cast<table*>(at));
  munmap(at, page);

  const int file = memfd_create("strata-test", MFD_CLOEXEC);
  SAME(ftruncate(file, static_cast<off_t>(page)), 0);
  at = reinterpret_cast<void*>(answer(SYS_mmap, nullptr, page, both, MAP_SHARED, file, 0L));
  hand_over(*static_cast<table*>(at));

  // Moved to where there was other memory.
  void* const other = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SAME(mremap(at, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, other) == other, true);
  ::new (other) table{};
  hand_over(*static_cast<table*>(other));

  // Not shared any more.
  at = mmap(other, page, both, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  SAME(at == other, true);
  if (who_shares_is_told()) counts(*static_cast<word*>(at), 0);
  munmap(at, page);
  close(file);

  const int segment = shmget(IPC_PRIVATE, page, IPC_CREAT | 0600);
  at = shmat(segment, nullptr, 0);
  shmctl(segment, IPC_RMID, nullptr);
  hand_over(*static_cast<table*>(at));
  SAME(shmdt(at), 0);
}

// ---- signals ----

std::atomic<int> handled{0};
void on_signal(int) { ++handled; }

void set_handler(int flags) {
  struct sigaction action {};
  action.sa_handler = &on_signal;
  action.sa_flags = flags;
  sigaction(SIGUSR1, &action, nullptr);
}

// A handler ends a wait, unless the call is to be begun again and has no time.
void signals() {
  const timespec time{far_s, 0};
  for (const int flags : {0, SA_RESTART}) {
    for (const timespec* t : {&time, static_cast<const timespec*>(nullptr)}) {
      const bool ends = flags == 0 || t != nullptr;
      set_handler(flags);
      handled = 0;
      word w{0};
      std::atomic<bool> left{false};
      std::thread waiter([&] {
        const long a = wait(w, 0, t);
        SAME(ends ? a == -EINTR : a == 0 || a == -EAGAIN, true);
        left = true;
      });
      constexpr int enough = 20;
      while (ends ? !left : handled < enough) {
        pthread_kill(waiter.native_handle(), SIGUSR1);
        sched_yield();
      }
      SAME(left, ends);
      w = 1;
      wake(w, 1);
      waiter.join();
    }
  }
}

// ---- other calls ----

long pid_in_constructor = 0;
[[gnu::constructor(101)]] void call_early() { pid_in_constructor = syscall(SYS_getpid); }

std::atomic<long> pid_in_handler{0};
void ask_in_handler(int) { pid_in_handler = syscall(SYS_getpid); }

// All six arguments.
void six_arguments() {
  const long page = sysconf(_SC_PAGESIZE);
  const int file = memfd_create("strata-test", MFD_CLOEXEC);
  SAME(ftruncate(file, 2 * page), 0);
  const char text[] = "second page";
  SAME(answer(SYS_pwrite64, file, text, sizeof text, page), static_cast<long>(sizeof text));
  const long at = answer(SYS_mmap, nullptr, page, PROT_READ, MAP_SHARED, file, page);
  SAME(at > 0, true);
  if (at > 0) SAME(*reinterpret_cast<const char*>(at), 's');
  SAME(answer(SYS_munmap, at, page), 0);
  SAME(answer(SYS_close, file), 0);
}

void others() {
  SAME(pid_in_constructor, getpid());
  six_arguments();
  SAME(answer(SYS_close, -1), -EBADF);
  SAME(answer(100000), -ENOSYS);
  errno = 77;
  SAME(syscall(SYS_getpid), getpid());
  SAME(errno, 77);
  signal(SIGUSR2, &ask_in_handler);
  raise(SIGUSR2);
  SAME(pid_in_handler, getpid());

  word w{0};
  const pid_t child = fork();
  if (child == 0) {
    const timespec little{0, 1'000'000};
    const bool right = syscall(SYS_getpid) == getpid() && wait(w, 1) == -EAGAIN &&
                       wait(w, 0, &little) == -ETIMEDOUT && wake(w, 1) == 0;
    _exit(right ? 0 : 1);
  }
  int status = -1;
  SAME(waitpid(child, &status, 0), child);
  SAME(status, 0);

  const pid_t parent = getpid();
  const pid_t other = vfork();
  if (other == 0) _exit(syscall(SYS_getppid) == parent && syscall(SYS_close, -1) == -1 ? 0 : 1);
  SAME(waitpid(other, &status, 0), other);
  SAME(status, 0);
}

}  // namespace

int main() {
  answers();
  std::thread(answers).join();
  for (const int flag : {FUTEX_PRIVATE_FLAG, 0}) {
    word w{0};
    counts(w, flag);
    in_time(flag);
    turns(flag);
    moves(flag);
  }
  kinds();
  operations();
  kernel_threads();
  processes();
  signals();
  others();
  std::thread(others).join();
  return pthread_programs::status_of_all();
}
