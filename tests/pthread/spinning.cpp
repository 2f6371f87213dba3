// SPDX-License-Identifier: Apache-2.0
// A program that knows nothing of strata, and whose threads compute and never wait, while what they
// are after is for another thread to do: run natively, and as it is under `strata pthread` with
// fewer workers than threads. Without preemption it does not end. Status 0 if all is right.
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "spinning_library.hpp"

namespace {

std::atomic<int> wrong{0};

void same(long got, long wanted, const char* what) {
  if (got != wanted && wrong.fetch_add(1) < 20)
    std::printf("wrong: %s is %ld, not %ld\n", what, got, wanted);
}

// Long enough for threads to be made to give way, if that were possible, some times.
constexpr long long_ns = 60'000'000;

long now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void compute_for_long() {
  volatile std::uint64_t x = 1;
  for (const long end = now_ns() + long_ns; now_ns() < end;) {
    for (int i = 0; i < 10'000; ++i) x = x * 6364136223846793005ULL + 1;
  }
}

// ---- who spins, and on what ----

// Calls of `step` until another thread, made when this one has begun, has set a flag.
template <class Step>
void thread_spins(Step step) {
  std::binary_semaphore begun(0);
  std::atomic<bool> flag{false};
  std::thread spins([&] {
    begun.release();
    while (!flag.load(std::memory_order_relaxed)) step(flag);
  });
  begun.acquire();
  std::thread sets([&] { flag = true; });
  spins.join();
  sets.join();
}

void main_spins() {
  std::atomic<bool> flag{false};
  std::thread sets([&] { flag = true; });
  while (!flag.load(std::memory_order_relaxed)) {
  }
  sets.join();
}

// As many as there are, and one more that ends them, which is begun last.
void all_spin() {
  constexpr int threads = 6;
  std::atomic<int> begun{0};
  std::atomic<bool> flag{false};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      ++begun;
      while (!flag.load(std::memory_order_relaxed)) {
      }
    });
  }
  std::thread ends([&] {
    while (begun != threads) {
    }
    flag = true;
  });
  while (!flag.load(std::memory_order_relaxed)) {
  }
  for (std::thread& t : all) t.join();
  ends.join();
}

void spins_by_trylock() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::binary_semaphore begun(0);
  pthread_mutex_lock(&mutex);
  std::thread spins([&] {
    begun.release();
    while (pthread_mutex_trylock(&mutex) != 0) {
    }
    pthread_mutex_unlock(&mutex);
  });
  begun.acquire();
  pthread_mutex_unlock(&mutex);
  spins.join();
}

void spinning() {
  main_spins();
  thread_spins([](const std::atomic<bool>&) {});
  all_spin();
  thread_spins([](const std::atomic<bool>& flag) { spin_in_library(flag); });
  spins_by_trylock();
  thread_spins([](const std::atomic<bool>&) { (void)pthread_self(); });
  sem_t semaphore;
  sem_init(&semaphore, 0, 1);
  thread_spins([&](const std::atomic<bool>&) {
    int value = 0;
    same(sem_getvalue(&semaphore, &value), 0, "sem_getvalue");
  });
  thread_spins([](const std::atomic<bool>&) { (void)time(nullptr); });
  thread_spins([](const std::atomic<bool>&) { sched_yield(); });
  // What it holds meanwhile is a lock of the process: nobody else gets it in its place.
  thread_spins([](const std::atomic<bool>&) { std::free(std::malloc(5000)); });
}

// ---- what a thread has stays its own ----

thread_local std::uint64_t kept = 0;

void computing() {
  constexpr unsigned threads = 6;
  const auto sum_of = [](unsigned seed) {
    double sum = 0;
    std::uint64_t x = seed;
    kept = seed;
    for (int i = 0; i < 3'000'000; ++i) {
      x = x * 6364136223846793005ULL + 1442695040888963407ULL;
      kept += x >> 60;
      sum += std::sqrt(static_cast<double>(x >> 40)) * 0.5;
    }
    return sum + static_cast<double>(kept);
  };
  std::array<double, threads> right{};
  for (unsigned i = 0; i < threads; ++i) right[i] = sum_of(i);
  std::array<double, threads> got{};
  std::array<int, threads> errors{};
  std::vector<std::thread> all;
  for (unsigned i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      errno = static_cast<int>(1000 + i);
      got[i] = sum_of(i);
      errors[i] = errno;
    });
  }
  for (std::thread& t : all) t.join();
  same(got == right, true, "what was computed");
  for (unsigned i = 0; i < threads; ++i)
    same(errors[i], static_cast<long>(1000 + i), "errno of a thread that computes");
}

// A stream that is locked is the thread's, which is the only one to write between its two halves.
void streams() {
  std::FILE* const stream = std::tmpfile();
  std::atomic<bool> flag{false};
  std::thread others([&] {
    while (!flag) std::fputs("x", stream);
  });
  flockfile(stream);
  std::fputs("<", stream);
  const long first = std::ftell(stream);
  compute_for_long();
  const long second = std::ftell(stream);
  funlockfile(stream);
  flag = true;
  others.join();
  same(second, first, "the place in a stream that is locked");
  std::fclose(stream);
}

// So is a locale that a thread has for itself.
void locales() {
  std::atomic<bool> flag{false};
  std::thread others([&] {
    while (!flag) {
      if (uselocale(nullptr) != LC_GLOBAL_LOCALE) {
        same(false, true, "the locale of others");
        return;
      }
    }
  });
  std::thread has_one([] {
    const locale_t mine = newlocale(LC_ALL_MASK, "C", nullptr);
    uselocale(mine);
    compute_for_long();
    same(uselocale(LC_GLOBAL_LOCALE) == mine, true, "a locale of one's own");
    freelocale(mine);
  });
  has_one.join();
  flag = true;
  others.join();
}

// ---- handlers ----

std::atomic<int> handled{0};

void count(int) { ++handled; }

// What a handler has interrupted may have any lock, as that of the allocator: others that compute
// would wait for it, and for who is to give it back, on the same kernel thread.
void handlers_that_compute() {
  constexpr int rounds = 10;
  struct sigaction action {};
  action.sa_handler = [](int) {
    compute_for_long();
    ++handled;
  };
  sigaction(SIGPROF, &action, nullptr);
  std::vector<std::thread> all;
  for (int i = 0; i < 3; ++i) {
    all.emplace_back([] {
      while (handled < rounds) std::free(std::malloc(50'000));  // too large for a thread's own
    });
  }
  for (int before = 0; before < rounds; before = handled) {
    const itimerval once{{0, 0}, {0, 5000}};
    setitimer(ITIMER_PROF, &once, nullptr);
    while (handled == before) std::free(std::malloc(60'000));
  }
  for (std::thread& t : all) t.join();
  (void)signal(SIGPROF, SIG_DFL);
  handled = 0;
}

sigjmp_buf way_out;

// Who has left a handler is not in it any more, and a later one is one again.
void leaves_in_handler() {
  struct sigaction action {};
  action.sa_handler = [](int) { siglongjmp(way_out, 1); };
  sigaction(SIGILL, &action, nullptr);
  thread_spins([left = false](const std::atomic<bool>&) mutable {
    if (!left && sigsetjmp(way_out, 1) == 0) raise(SIGILL);
    left = true;
  });
  (void)signal(SIGILL, SIG_DFL);
}

// A mask is asked for and told as ever.
void masks() {
  struct sigaction action {};
  action.sa_handler = &count;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGUSR2, SIGPROF}) {
    sigaction(number, &action, nullptr);
    struct sigaction told {};
    sigaction(number, nullptr, &told);
    for (int other = 1; other < NSIG; ++other)
      same(sigismember(&told.sa_mask, other) == 1, false, "a signal in an empty mask");
    raise(number);
    (void)signal(number, SIG_DFL);
  }
  same(handled, 2, "handlers that ran");
}

// One is sent to whom computes, alone on its worker or not, and never calls anything.
void sent_to_who_computes() {
  static std::atomic<bool> flag;
  (void)signal(SIGUSR2, [](int) { flag = true; });
  const auto spin = [] {
    while (!flag.load(std::memory_order_relaxed)) {
    }
  };
  for (int others = 0; others < 3; ++others) {
    flag = false;
    std::atomic<int> begun{0};
    std::vector<std::thread> all;
    for (int i = 0; i <= others; ++i) {
      all.emplace_back([&] {
        ++begun;
        spin();
      });
    }
    while (begun <= others) sched_yield();
    same(pthread_kill(all.back().native_handle(), SIGUSR2), 0, "pthread_kill");
    for (std::thread& t : all) t.join();
  }
  flag = false;
  std::thread sends([of_main = pthread_self()] { pthread_kill(of_main, SIGUSR2); });
  spin();
  sends.join();
  (void)signal(SIGUSR2, SIG_DFL);
}

// ---- cancellation ----

struct cancelled {
  std::atomic<bool> begun{false};
  std::atomic<int> cleaned{0};
};
struct counts_its_end {
  std::atomic<int>& ends;
  ~counts_its_end() { ++ends; }
};

// Apart: it may be left at each instruction, of which those have to be told that have destructors.
[[gnu::noinline]] void compute_until_cancelled(std::atomic<bool>& begun) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  begun = true;
  for (volatile std::uint64_t x = 1;;) x = x * 6364136223846793005ULL + 1;
}

// Of the asynchronous type it comes to who computes, too, and to nobody else.
void cancelled_while_it_computes() {
  const auto compute = [](void* argument) -> void* {
    auto& c = *static_cast<cancelled*>(argument);
    const counts_its_end here{c.cleaned};
    pthread_cleanup_push([](void* n) { ++*static_cast<std::atomic<int>*>(n); }, &c.cleaned);
    compute_until_cancelled(c.begun);
    pthread_cleanup_pop(0);
    return nullptr;
  };
  std::array<cancelled, 3> all;
  std::array<pthread_t, 3> threads{};
  for (std::size_t i = 0; i < all.size(); ++i)
    same(pthread_create(&threads[i], nullptr, compute, &all[i]), 0, "pthread_create");
  for (const cancelled& c : all) {
    while (!c.begun) sched_yield();
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    void* result = nullptr;
    pthread_cancel(threads[i]);
    pthread_join(threads[i], &result);
    same(result == PTHREAD_CANCELED, true, "a thread that computes is cancelled");
    same(all[i].cleaned, 2, "what a cancelled thread has run");
  }
  cancelled one;
  pthread_t deferred{};
  const auto compute_on = [](void* argument) -> void* {
    auto& c = *static_cast<cancelled*>(argument);
    c.begun = true;
    compute_for_long();
    ++c.cleaned;
    for (;;) pthread_testcancel();
  };
  same(pthread_create(&deferred, nullptr, compute_on, &one), 0, "pthread_create");
  while (!one.begun) sched_yield();
  pthread_cancel(deferred);
  pthread_join(deferred, nullptr);
  same(one.cleaned, 1, "what a thread has computed when its cancellation is deferred");
}

// What main() blocks stays blocked where others go on behind it that were interrupted before.
void blocked_by_main() {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  handled = 0;
  (void)signal(SIGUSR2, &count);
  std::atomic<bool> flag{false};
  std::atomic<long> steps{0};
  std::thread interrupted([&] {
    while (!flag.load(std::memory_order_relaxed)) ++steps;
  });
  const auto await_its_turn = [&] {
    for (const long before = steps; steps == before;) {
    }
  };
  await_its_turn();
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
  await_its_turn();
  flag = true;
  interrupted.join();
  kill(getpid(), SIGUSR2);
  same(handled, 0, "handlers that ran of what is blocked");
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  same(handled, 1, "handlers that ran of what was blocked");
  (void)signal(SIGUSR2, SIG_DFL);
}

}  // namespace

int main() {
  spinning();
  computing();
  streams();
  locales();
  handlers_that_compute();
  leaves_in_handler();
  masks();
  sent_to_who_computes();
  cancelled_while_it_computes();
  blocked_by_main();
  return wrong == 0 ? 0 : 1;
}
