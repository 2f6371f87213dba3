// SPDX-License-Identifier: Apache-2.0
// What the parts of this program share: handlers that count, a signal that comes
// again and again, and masks.
#pragma once
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <initializer_list>

#include "../checks.hpp"

namespace process_signals {

using namespace pthread_programs;

// A handler counts, then posts: who waits for a count and finds it too small has a post to come.
// main() makes it before there are handlers.
inline std::atomic<int> handled{0};
inline sem_t one_handled;

// Async-signal-safe. The count with this one.
inline int count() {
  const int now = ++handled;
  sem_post(&one_handled);
  return now;
}
inline void count_one(int) { count(); }

// For one thread at a time. Posts left by earlier handlers cost it a look at the count each.
inline void wait_until_handled(int n) {
  while (handled < n) {
    if (sem_wait(&one_handled) != 0) SAME(errno, EINTR);
  }
}

inline void handle(int number, int flags, void (*handler)(int) = &count_one) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  SAME(sigaction(number, &action, nullptr), 0);
  handled = 0;
}

inline volatile sig_atomic_t stopped = 0;
inline void stop(int) { stopped = 1; }

// SIGALRM again and again: one that comes before a wait ends none.
class ticks {
 public:
  explicit ticks(int every_us = 1000) {
    const itimerval often{{0, every_us}, {0, every_us}};
    SAME(setitimer(ITIMER_REAL, &often, nullptr), 0);
  }
  ~ticks() {
    const itimerval never{};
    SAME(setitimer(ITIMER_REAL, &never, nullptr), 0);
  }
  ticks(const ticks&) = delete;
  ticks& operator=(const ticks&) = delete;
};

struct a_pipe {
  int in = -1;
  int out = -1;
  a_pipe() {
    std::array<int, 2> both{};
    SAME(pipe(both.data()), 0);
    in = both[0];
    out = both[1];
  }
  ~a_pipe() {
    close(in);
    close(out);
  }
  a_pipe(const a_pipe&) = delete;
  a_pipe& operator=(const a_pipe&) = delete;
};

inline sigset_t set_of(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int n : numbers) sigaddset(&set, n);
  return set;
}

inline bool is_blocked(int number) {
  sigset_t now;
  SAME(pthread_sigmask(SIG_BLOCK, nullptr, &now), 0);
  return sigismember(&now, number) == 1;
}

inline void interrupted(long answer) {
  SAME(answer, -1);
  SAME(errno, EINTR);
}

inline constexpr timespec long_time{3600, 0};

}  // namespace process_signals
