// SPDX-License-Identifier: Apache-2.0
// What is pending of a signal goes when the program ignores it.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "parts.hpp"
#include "support.hpp"

namespace process_signals {
namespace {

bool is_pending(int number) {
  sigset_t now;
  SAME(sigpending(&now), 0);
  return sigismember(&now, number) == 1;
}

// Whether it is there afterwards that has been sent before.
template <class Send>
void is_thrown_away(int number, sighandler_t ignores, Send send) {
  const sigset_t it = set_of({number});
  SAME(pthread_sigmask(SIG_BLOCK, &it, nullptr), 0);
  handle(number, 0);
  send();
  SAME(is_pending(number), true);
  SAME(signal(number, ignores) == &count_one, true);
  SAME(is_pending(number), false);
  handle(number, 0);
  SAME(pthread_sigmask(SIG_UNBLOCK, &it, nullptr), 0);
  SAME(handled, 0);
  SAME(raise(number), 0);
  SAME(handled, 1);
  (void)signal(number, SIG_DFL);
}

void throw_away_ones_own() {
  for (const int number : {SIGUSR2, SIGPIPE})
    is_thrown_away(number, SIG_IGN, [&] { SAME(raise(number), 0); });
  is_thrown_away(SIGWINCH, SIG_DFL, [] { SAME(raise(SIGWINCH), 0); });
  const int real_time = SIGRTMIN + 1;
  is_thrown_away(real_time, SIG_IGN, [&] {
    for (int i = 0; i < 3; ++i) SAME(pthread_sigqueue(pthread_self(), real_time, sigval{}), 0);
  });
}

// What is pending for one thread goes when another one ignores it.
void throw_away_anothers() {
  const sigset_t it = set_of({SIGUSR2});
  handle(SIGUSR2, 0);
  sem_t is_there;
  sem_t is_ignored;
  SAME(sem_init(&is_there, 0, 0), 0);
  SAME(sem_init(&is_ignored, 0, 0), 0);
  std::thread other([&] {
    SAME(pthread_sigmask(SIG_BLOCK, &it, nullptr), 0);
    SAME(raise(SIGUSR2), 0);
    SAME(is_pending(SIGUSR2), true);
    SAME(sem_post(&is_there), 0);
    while (sem_wait(&is_ignored) != 0) SAME(errno, EINTR);
    SAME(is_pending(SIGUSR2), false);
    SAME(pthread_sigmask(SIG_UNBLOCK, &it, nullptr), 0);
  });
  while (sem_wait(&is_there) != 0) SAME(errno, EINTR);
  SAME(signal(SIGUSR2, SIG_IGN) == &count_one, true);
  handle(SIGUSR2, 0);
  SAME(sem_post(&is_ignored), 0);
  other.join();
  SAME(handled, 0);
  (void)signal(SIGUSR2, SIG_DFL);
}

}  // namespace

void ignored() {
  throw_away_ones_own();
  std::thread(&throw_away_ones_own).join();
  is_thrown_away(SIGUSR2, SIG_IGN, [] { SAME(kill(getpid(), SIGUSR2), 0); });
  throw_away_anothers();
}

}  // namespace process_signals
