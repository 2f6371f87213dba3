// SPDX-License-Identifier: Apache-2.0
// What is pending of a signal goes when the program ignores it.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
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

// Handlers may, wherever they interrupt: also what has locked another thread's state, which asking
// for its name spends its time with.
void ignore_and_count(int) {
  (void)signal(SIGUSR2, SIG_IGN);
  count();
}
void ignore_in_handlers() {
  sem_t ends;
  SAME(sem_init(&ends, 0, 0), 0);
  std::thread other([&] {
    while (sem_wait(&ends) != 0) SAME(errno, EINTR);
  });
  SAME(pthread_setname_np(other.native_handle(), "asked"), 0);
  handle(SIGPROF, SA_RESTART, &ignore_and_count);
  const itimerval often{{0, 1000}, {0, 1000}};
  SAME(setitimer(ITIMER_PROF, &often, nullptr), 0);
  std::array<char, 16> name{};
  while (handled < 50) SAME(pthread_getname_np(other.native_handle(), name.data(), 16), 0);
  const itimerval never{};
  SAME(setitimer(ITIMER_PROF, &never, nullptr), 0);
  (void)signal(SIGPROF, SIG_IGN);
  SAME(sem_post(&ends), 0);
  other.join();
  (void)signal(SIGUSR2, SIG_DFL);
}

}  // namespace

void ignored() {
  throw_away_ones_own();
  std::thread(&throw_away_ones_own).join();
  is_thrown_away(SIGUSR2, SIG_IGN, [] { SAME(kill(getpid(), SIGUSR2), 0); });
  throw_away_anothers();
  ignore_in_handlers();
}

}  // namespace process_signals
