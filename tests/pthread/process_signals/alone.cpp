// SPDX-License-Identifier: Apache-2.0
// A handler that takes long is not called beside itself: what comes meanwhile comes afterwards. And
// what main() sends to itself by a system call comes before that returns.
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>

#include "parts.hpp"
#include "support.hpp"

namespace process_signals {

static long now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
}

static std::atomic<bool> runs{false};
static std::atomic<int> beside{0};
static std::atomic<bool> next_is_long{false};

// Longer than anybody waits for the thread that it has interrupted, once: main() has to get on.
static void take_long(int) {
  if (runs.exchange(true)) ++beside;
  const long end = next_is_long.exchange(false) ? now_us() + 12'000 : 0;
  while (now_us() < end) {
  }
  runs = false;
  count();
}

// Signals come while main() calls what waits, and others while it computes behind that: the former
// may still be on their way when the latter's handler begins. All other threads have blocked them.
void alone() {
  sem_t semaphore;
  SAME(sem_init(&semaphore, 0, 0), 0);
  handle(SIGALRM, SA_RESTART, &take_long);
  beside = 0;
  {
    const ticks often(300);
    for (int i = 0; i < 40; ++i) {
      next_is_long = true;
      for (int k = 0; k < 3000; ++k) SAME(sem_post(&semaphore), 0);
      const int before = handled;
      while (handled < before + 2) asm volatile("" : : : "memory");
      while (sem_trywait(&semaphore) == 0) {
      }
      SAME(errno, EAGAIN);
    }
  }
  SAME(beside, 0);
  SAME(signal(SIGALRM, SIG_IGN) == &take_long, true);
  SAME(beside, 0);
}

// Without the C library's functions for it.
void sent_by_system_calls() {
  handle(SIGUSR1, 0);
  const pid_t self = getpid();
  for (int i = 1; i <= 20; ++i) {
    SAME(syscall(SYS_kill, self, SIGUSR1), 0);
    SAME(handled, i);
  }
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  SAME(syscall(SYS_rt_sigqueueinfo, self, SIGUSR1, &info), 0);
  SAME(handled, 21);
  SAME(syscall(SYS_rt_tgsigqueueinfo, self, gettid(), SIGUSR1, &info), 0);
  SAME(handled, 22);
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, self, 0));
  if (process < 0) return;  // before Linux 5.3
  SAME(syscall(SYS_pidfd_send_signal, process, SIGUSR1, nullptr, 0), 0);
  SAME(handled, 23);
  close(process);
}

}  // namespace process_signals
