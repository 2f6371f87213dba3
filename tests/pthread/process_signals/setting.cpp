// SPDX-License-Identifier: Apache-2.0
// How handlers are set, and what is told of that.
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "parts.hpp"
#include "support.hpp"

namespace process_signals {

// Deprecated, and used all the same.
static int interrupts(int number, int on) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return siginterrupt(number, on);
#pragma GCC diagnostic pop
}

void setting() {
  (void)signal(SIGUSR2, SIG_DFL);
  SAME(signal(SIGUSR2, &count_one) == SIG_DFL, true);
  SAME(signal(SIGUSR2, SIG_IGN) == &count_one, true);
  SAME(kill(getpid(), SIGUSR2), 0);
  SAME(signal(SIGUSR2, &stop) == SIG_IGN, true);
  struct sigaction now {};
  SAME(sigaction(SIGUSR2, nullptr, &now), 0);
  SAME(now.sa_handler == &stop, true);
  SAME(now.sa_flags & (SA_RESTART | SA_SIGINFO | static_cast<int>(SA_RESETHAND)), SA_RESTART);
  SAME(interrupts(SIGUSR2, 1), 0);
  SAME(sigaction(SIGUSR2, nullptr, &now), 0);
  SAME(now.sa_flags & SA_RESTART, 0);
  SAME(interrupts(SIGUSR2, 0), 0);
  // Once.
  handle(SIGUSR2, static_cast<int>(SA_RESETHAND));
  SAME(kill(getpid(), SIGUSR2), 0);
  wait_until_handled(1);
  SAME(sigaction(SIGUSR2, nullptr, &now), 0);
  SAME(now.sa_handler == SIG_DFL, true);
  SAME(sigaction(SIGKILL, &now, nullptr), -1);
  SAME(errno, EINVAL);
  SAME(sigaction(1000, &now, nullptr), -1);
  SAME(errno, EINVAL);
}

// Deprecated, and used all the same.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void old_ways() {
  handled = 0;
  stopped = 0;
  SAME(sigset(SIGUSR2, &stop) != SIG_ERR, true);
  SAME(sigset(SIGUSR2, SIG_HOLD) == &stop, true);
  SAME(kill(getpid(), SIGUSR2), 0);
  SAME(sigset(SIGUSR2, &count_one) == SIG_HOLD, true);  // let in when the handler is there
  wait_until_handled(1);
  SAME(stopped, 0);
  SAME(is_blocked(SIGUSR2), false);
  SAME(sighold(SIGUSR2), 0);
  SAME(is_blocked(SIGUSR2), true);
  SAME(kill(getpid(), SIGUSR2), 0);
  SAME(handled, 1);
  interrupted(sigpause(SIGUSR2));
  SAME(handled, 2);
  SAME(is_blocked(SIGUSR2), true);
  SAME(sigrelse(SIGUSR2), 0);
  SAME(is_blocked(SIGUSR2), false);
  SAME(sighold(1000), -1);
  (void)signal(SIGUSR2, SIG_DFL);
}
#pragma GCC diagnostic pop

}  // namespace process_signals
