// SPDX-License-Identifier: Apache-2.0
// Signals for the process that come when it is least convenient: natively, and under `strata
// pthread`. Each is sent when the one before has been handled, so one that is lost stops the
// program. Status 0 if all is right.
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

#include "process_signals/support.hpp"

namespace process_signals {
namespace {

// One that comes while main() is in the handler, on whatever worker that runs, is handled when it
// ends: at the first the handler sends another.
std::atomic<bool> sends_another{false};
void count_and_send_again(int number) {
  if (sends_another.exchange(false)) kill(getpid(), number);
  count();
}

void in_its_handler() {
  handle(SIGALRM, 0, &count_and_send_again);
  sem_t go;
  SAME(sem_init(&go, 0, 0), 0);
  std::atomic<bool> ended{false};
  std::thread sends([&] {
    const sigset_t alarms = set_of({SIGALRM});
    pthread_sigmask(SIG_BLOCK, &alarms, nullptr);
    for (;;) {
      while (sem_wait(&go) != 0) {
      }
      if (ended) return;
      SAME(kill(getpid(), SIGALRM), 0);
    }
  });
  for (int i = 0; i < 300; ++i) {
    handled = 0;
    sends_another = true;
    SAME(i % 2 == 0 ? sem_post(&go) : kill(getpid(), SIGALRM), 0);
    wait_until_handled(2);
    SAME(handled, 2);
  }
  ended = true;
  SAME(sem_post(&go), 0);
  sends.join();
}

// The same where another thread is the only one to have it unblocked.
void in_a_threads_handler() {
  const sigset_t usr2 = set_of({SIGUSR2});
  handle(SIGUSR2, 0, &count_and_send_again);
  SAME(pthread_sigmask(SIG_BLOCK, &usr2, nullptr), 0);
  sem_t end;
  SAME(sem_init(&end, 0, 0), 0);
  std::atomic<bool> ended{false};
  std::thread takes([&] {
    SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
    while (!ended) {
      if (sem_wait(&end) != 0) SAME(errno, EINTR);
    }
  });
  for (int i = 1; i <= 300; ++i) {
    sends_another = true;
    SAME(kill(getpid(), SIGUSR2), 0);
    wait_until_handled(2 * i);
    SAME(handled, 2 * i);
  }
  ended = true;
  SAME(sem_post(&end), 0);
  takes.join();
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
}

// The only ones that have not blocked it begin and end all the time.
void to_threads_that_end() {
  const sigset_t usr1 = set_of({SIGUSR1});
  handle(SIGUSR1, 0);
  SAME(pthread_sigmask(SIG_BLOCK, &usr1, nullptr), 0);
  constexpr int times = 300;
  std::atomic<bool> ended{false};
  std::thread sends([&] {
    for (int i = 1; i <= times; ++i) {
      SAME(kill(getpid(), SIGUSR1), 0);
      wait_until_handled(i);
      SAME(handled, i);
    }
    ended = true;
  });
  while (!ended) {
    std::array<std::thread, 4> all;
    for (std::thread& t : all)
      t = std::thread([&] { SAME(pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr), 0); });
    for (std::thread& t : all) t.join();
  }
  sends.join();
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr), 0);
  SAME(handled, times);
}

// What is pending is handled before the call returns that lets it in, though its thread ends then.
void when_it_is_unblocked() {
  const sigset_t usr1 = set_of({SIGUSR1});
  handle(SIGUSR1, 0);
  SAME(pthread_sigmask(SIG_BLOCK, &usr1, nullptr), 0);
  for (int i = 1; i <= 100; ++i) {
    SAME(kill(getpid(), SIGUSR1), 0);
    std::thread([&] {
      SAME(handled, i - 1);
      SAME(pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr), 0);
      SAME(handled, i);
    }).join();
  }
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr), 0);
  SAME(handled, 100);
}

// One that comes while the only thread that takes it runs the handler is pending for all: one that
// waits for it has it.
sem_t is_in_handler;
sem_t may_leave;
void send_and_stay(int number) {
  kill(getpid(), number);
  sem_post(&is_in_handler);
  while (sem_wait(&may_leave) != 0) {
  }
  count();
}

void awaited_elsewhere() {
  SAME(sem_init(&is_in_handler, 0, 0), 0);
  SAME(sem_init(&may_leave, 0, 0), 0);
  const sigset_t usr2 = set_of({SIGUSR2});
  handle(SIGUSR2, 0, &send_and_stay);
  SAME(pthread_sigmask(SIG_BLOCK, &usr2, nullptr), 0);
  for (int i = 1; i <= 30; ++i) {
    std::thread takes([&] {
      SAME(kill(getpid(), SIGUSR2), 0);
      SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
    });
    std::thread waits([&] {
      while (sem_wait(&is_in_handler) != 0) {
      }
      siginfo_t info{};
      SAME(sigwaitinfo(&usr2, &info), SIGUSR2);
      SAME(info.si_signo, SIGUSR2);
      SAME(info.si_pid, getpid());
      SAME(sem_post(&may_leave), 0);
    });
    takes.join();
    waits.join();
    SAME(handled, i);
  }
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
  SAME(handled, 30);
}

// What is sent to a thread that waits for it is not lost where the kernel has no room for it: then
// who sends it is told so, or the thread gets it all the same.
void without_room() {
  const int number = SIGRTMIN + 1;
  const sigset_t it = set_of({number});
  SAME(pthread_sigmask(SIG_BLOCK, &it, nullptr), 0);
  rlimit room{};
  SAME(getrlimit(RLIMIT_SIGPENDING, &room), 0);
  const rlimit none{0, room.rlim_max};
  for (const int pause_us : {0, 2000}) {
    std::thread waits([&] {
      siginfo_t info{};
      SAME(sigwaitinfo(&it, &info), number);
      SAME(info.si_value.sival_int, 7);
    });
    usleep(static_cast<useconds_t>(pause_us));
    const sigval seven{.sival_int = 7};
    SAME(setrlimit(RLIMIT_SIGPENDING, &none), 0);
    const int error = pthread_sigqueue(waits.native_handle(), number, seven);
    SAME(setrlimit(RLIMIT_SIGPENDING, &room), 0);
    if (error == EAGAIN)
      SAME(pthread_sigqueue(waits.native_handle(), number, seven), 0);
    else
      SAME(error, 0);
    waits.join();
  }
  SAME(pthread_sigmask(SIG_UNBLOCK, &it, nullptr), 0);
}

// Those that runtimes are known to use for themselves are the program's.
constexpr std::array rarely_used{SIGURG, SIGSTKFLT};

// Such a one comes to a thread in the middle of others; and while masks change, also where the
// kernel has no room for what there is to say of signals.
void comes_to_a_thread(int number) {
  const sigset_t it = set_of({number});
  const sigset_t usr2 = set_of({SIGUSR2});
  handle(SIGALRM, SA_RESTART);
  handle(number, SA_RESTART);
  SAME(pthread_sigmask(SIG_BLOCK, &it, nullptr), 0);
  SAME(pthread_sigmask(SIG_BLOCK, &usr2, nullptr), 0);
  sem_t end;
  SAME(sem_init(&end, 0, 0), 0);
  std::thread takes([&] {
    SAME(pthread_sigmask(SIG_UNBLOCK, &it, nullptr), 0);
    while (sem_wait(&end) != 0) {
    }
  });
  rlimit room{};
  SAME(getrlimit(RLIMIT_SIGPENDING, &room), 0);
  for (const bool has_room : {true, false}) {
    const rlimit limit{has_room ? room.rlim_cur : 0, room.rlim_max};
    SAME(setrlimit(RLIMIT_SIGPENDING, &limit), 0);
    handled = 0;
    std::thread sends([&] {
      const int each = has_room ? 2 : 1;
      for (int i = 1; i <= 300; ++i) {
        if (has_room) {
          SAME(kill(getpid(), SIGALRM), 0);
        } else {
          SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
          SAME(pthread_sigmask(SIG_BLOCK, &usr2, nullptr), 0);
        }
        SAME(kill(getpid(), number), 0);
        wait_until_handled(each * i);
        SAME(handled, each * i);
      }
    });
    sends.join();
  }
  SAME(setrlimit(RLIMIT_SIGPENDING, &room), 0);
  SAME(sem_post(&end), 0);
  takes.join();
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
  SAME(pthread_sigmask(SIG_UNBLOCK, &it, nullptr), 0);
  SAME(signal(number, SIG_DFL) == &count_one, true);
}

// The same where the thread that takes it computes, and does not come to its handlers. The first
// may come before it has unblocked it.
void comes_to_who_computes(int number) {
  const sigset_t it = set_of({number});
  handle(number, SA_RESTART);
  SAME(pthread_sigmask(SIG_BLOCK, &it, nullptr), 0);
  constexpr int times = 20;
  std::atomic<int> sent{0};
  std::thread sends([&] {
    for (int i = 1; i <= times; ++i) {
      SAME(kill(getpid(), number), 0);
      sent = i;
      wait_until_handled(i);
      SAME(handled, i);
    }
  });
  std::thread takes([&] {
    SAME(pthread_sigmask(SIG_UNBLOCK, &it, nullptr), 0);
    while (handled < times) {
      while (handled < sent) asm volatile("" : : : "memory");
      sched_yield();
    }
  });
  sends.join();
  takes.join();
  SAME(pthread_sigmask(SIG_UNBLOCK, &it, nullptr), 0);
  SAME(signal(number, SIG_DFL) == &count_one, true);
}

// Whoever ignores it throws away what is pending of it, and nothing else.
void is_ignored(int number) {
  const sigset_t usr2 = set_of({SIGUSR2});
  handle(SIGUSR2, SA_RESTART);
  SAME(pthread_sigmask(SIG_BLOCK, &usr2, nullptr), 0);
  std::atomic<bool> ended{false};
  std::thread takes([&] {
    for (int i = 1; i <= 300; ++i) {
      SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
      SAME(kill(getpid(), SIGUSR2), 0);
      wait_until_handled(i);
      SAME(handled, i);
      SAME(pthread_sigmask(SIG_BLOCK, &usr2, nullptr), 0);
    }
    ended = true;
  });
  while (!ended) {
    SAME(signal(number, SIG_IGN) == SIG_ERR, false);
    SAME(signal(number, SIG_DFL) == SIG_IGN, true);
    sched_yield();
  }
  takes.join();
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
}

void rare_to_a_thread() {
  for (const int number : rarely_used) comes_to_a_thread(number);
}
void rare_to_who_computes() {
  for (const int number : rarely_used) comes_to_who_computes(number);
}
void rare_ignored() {
  for (const int number : rarely_used) is_ignored(number);
}

long now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}
// Longer than anybody waits for a thread to come to its handlers.
constexpr long long_ms = 8;
void stay_long() {
  for (const long end = now_ms() + long_ms; now_ms() < end;) {
  }
}

// A handler that does not block its signal is interrupted by the next one, or comes before it: in
// one thread, as there is only one that takes it. The next is sent when one has begun.
std::atomic<int> in_there{0};
std::atomic<pthread_t> who_is_in_there{};
std::atomic<bool> is_beside{false};
std::atomic<int> begun{0};
void take_long(int) {
  if (in_there++ == 0)
    who_is_in_there = pthread_self();
  else if (pthread_equal(who_is_in_there, pthread_self()) == 0)
    is_beside = true;
  ++begun;
  sem_post(&is_in_handler);
  stay_long();
  --in_there;
  count();
}

void not_beside_itself(bool by_main) {
  constexpr int times = 20;
  const sigset_t usr1 = set_of({SIGUSR1});
  SAME(sem_init(&is_in_handler, 0, 0), 0);
  begun = 0;
  is_beside = false;
  handle(SIGUSR1, SA_NODEFER, &take_long);
  SAME(pthread_sigmask(SIG_BLOCK, &usr1, nullptr), 0);
  sem_t never;
  SAME(sem_init(&never, 0, 0), 0);
  const auto take = [&] {
    SAME(pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr), 0);
    // In waits as well as in none.
    for (int i = 0; handled < times; ++i) {
      const timespec moment{0, 0};
      if (i % 2 == 0) SAME(sem_timedwait(&never, &moment), -1);
      for (int k = 0; k < 100'000 && handled < times; ++k) asm volatile("" : : : "memory");
      sched_yield();
    }
  };
  std::thread sends([&] {
    for (int i = 0; i < times; ++i) {
      SAME(kill(getpid(), SIGUSR1), 0);
      while (sem_wait(&is_in_handler) != 0) {
      }
    }
  });
  if (by_main)
    take();
  else
    std::thread(take).join();
  sends.join();
  SAME(begun, times);
  SAME(handled, times);
  SAME(in_there, 0);
  SAME(is_beside, false);
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr), 0);
}
void main_not_beside_itself() { not_beside_itself(true); }
void thread_not_beside_itself() { not_beside_itself(false); }

// main() is on the CPU of all others, who go before it: what they tell it comes at once. Handlers
// that do not block their signal end all the same, where the next one comes after them as well as
// where that interrupts them. Afterwards main() stays like that: nothing comes after this.
constexpr int in_a_row = 3;
void send_the_next(int number) {
  if (++begun < in_a_row) kill(getpid(), number);
  stay_long();
  count();
}
// Mostly it is interrupted in what it calls.
void call_until_the_next(int) {
  const long end = now_ms() + long_ms;
  const int now = ++begun;
  while (now < in_a_row && begun == now && now_ms() < end)
    for (int k = 0; k < 100; ++k) (void)pthread_self();
  count();
}

void put_main_last() {
  cpu_set_t all;
  SAME(syscall(SYS_sched_getaffinity, 0, sizeof all, &all) > 0, true);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &all)) ++cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  DIR* const threads = opendir("/proc/self/task");
  while (const dirent* const thread = readdir(threads)) {
    const int number = std::atoi(thread->d_name);
    if (number > 0) SAME(syscall(SYS_sched_setaffinity, number, sizeof one, &one), 0);
  }
  closedir(threads);
  const sched_param none{};
  SAME(syscall(SYS_sched_setscheduler, getpid(), SCHED_IDLE, &none), 0);
}

void when_all_others_go_first() {
  const sigset_t usr1 = set_of({SIGUSR1});
  sigset_t none;
  sigemptyset(&none);
  begun = 0;
  handle(SIGUSR1, SA_NODEFER, &send_the_next);
  SAME(pthread_sigmask(SIG_BLOCK, &usr1, nullptr), 0);
  put_main_last();
  SAME(kill(getpid(), SIGUSR1), 0);
  while (handled < in_a_row) SAME(sigsuspend(&none), -1);
  SAME(begun, in_a_row);
  begun = 0;
  handle(SIGALRM, SA_NODEFER, &call_until_the_next);
  {
    const ticks often(200);
    while (begun < in_a_row) asm volatile("" : : : "memory");
  }
  SAME(handled, begun);
}

// All that there is for signals begins in the child, while they come already.
void at_the_beginning() {
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child != 0) {
      int status = -1;
      while (waitpid(child, &status, 0) != child) SAME(errno, EINTR);
      SAME(status, 0);
      continue;
    }
    handle(SIGALRM, SA_RESTART);
    const ticks often(50);
    const sigset_t usr2 = set_of({SIGUSR2});
    std::array<std::thread, 3> all;
    for (std::thread& t : all)
      t = std::thread([&] {
        for (int k = 0; k < 50; ++k)
          SAME(pthread_sigmask(k % 2 == 0 ? SIG_BLOCK : SIG_UNBLOCK, &usr2, nullptr), 0);
      });
    for (int k = 0; k < 100; ++k)
      SAME(pthread_sigmask(k % 2 == 0 ? SIG_BLOCK : SIG_UNBLOCK, &usr2, nullptr), 0);
    for (std::thread& t : all) t.join();
    wait_until_handled(5);
    _exit(wrong == 0 ? 0 : 1);
  }
}

// Whose wait for a child a handler ends: the thread's that it is for, and no other's.
void nobody_elses() {
  const a_pipe end;
  const pid_t lasting = fork();
  if (lasting == 0) {
    close(end.out);
    char c = 0;
    while (read(end.in, &c, 1) < 0) {
    }
    _exit(0);
  }
  handle(SIGUSR1, 0);
  std::atomic<bool> ended{false};
  std::atomic<int> endings{0};
  std::thread interrupted_one([&] {
    int status = -1;
    while (waitpid(lasting, &status, 0) != lasting) {
      SAME(errno, EINTR);
      ++endings;
    }
    SAME(status, 0);
  });
  std::thread other([&] {
    const sigset_t usr1 = set_of({SIGUSR1});
    SAME(pthread_sigmask(SIG_BLOCK, &usr1, nullptr), 0);
    // While handlers end the one's waits, and until they have ended some.
    for (int i = 0; i < 150 || endings < 20; ++i) {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      int status = -1;
      SAME(waitpid(child, &status, 0), child);
      SAME(status, 0);
    }
    ended = true;
  });
  while (!ended) {
    SAME(pthread_kill(interrupted_one.native_handle(), SIGUSR1), 0);
    sched_yield();
  }
  other.join();
  SAME(write(end.out, "x", 1), 1);
  interrupted_one.join();
}

}  // namespace
}  // namespace process_signals

int main(int argc, char** argv) {
  using namespace process_signals;
  constexpr std::array parts{
      part{"in_its_handler", &in_its_handler},
      part{"in_a_threads_handler", &in_a_threads_handler},
      part{"to_threads_that_end", &to_threads_that_end},
      part{"when_it_is_unblocked", &when_it_is_unblocked},
      part{"awaited_elsewhere", &awaited_elsewhere},
      part{"without_room", &without_room},
      part{"rare_to_a_thread", &rare_to_a_thread},
      part{"rare_to_who_computes", &rare_to_who_computes},
      part{"rare_ignored", &rare_ignored},
      part{"main_not_beside_itself", &main_not_beside_itself},
      part{"thread_not_beside_itself", &thread_not_beside_itself},
      part{"at_the_beginning", &at_the_beginning},
      part{"nobody_elses", &nobody_elses},
      part{"when_all_others_go_first", &when_all_others_go_first},
  };
  SAME(sem_init(&one_handled, 0, 0), 0);
  run_parts(parts, argc, argv);
  return status_of_all();
}
