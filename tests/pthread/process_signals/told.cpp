// SPDX-License-Identifier: Apache-2.0
// What a handler is told: who sent the signal, how, and with which value.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "parts.hpp"
#include "support.hpp"

namespace process_signals {

static std::atomic<int> sender{0};
static std::atomic<int> code{0};
static std::atomic<int> value{0};
static std::atomic<bool> has_mask{false};
static void note(int number, siginfo_t* info, void*) {
  sender = info->si_pid;
  code = info->si_code;
  value = info->si_value.sival_int;
  has_mask = is_blocked(number) && is_blocked(SIGUSR2);
  count();
}

void told() {
  struct sigaction action {};
  action.sa_sigaction = &note;
  action.sa_flags = SA_SIGINFO;
  action.sa_mask = set_of({SIGUSR2});
  SAME(sigaction(SIGUSR1, &action, nullptr), 0);
  struct sigaction now {};
  SAME(sigaction(SIGUSR1, nullptr, &now), 0);
  SAME(now.sa_sigaction == &note, true);
  SAME(now.sa_flags & SA_SIGINFO, SA_SIGINFO);
  SAME(sigismember(&now.sa_mask, SIGUSR2), 1);
  handled = 0;
  const pid_t child = fork();
  if (child == 0) {
    kill(getppid(), SIGUSR1);
    _exit(0);
  }
  wait_until_handled(1);
  SAME(sender, child);
  SAME(code, SI_USER);
  SAME(has_mask, true);
  int n = 0;
  while ((n = static_cast<int>(waitpid(child, nullptr, 0))) < 0 && errno == EINTR) {
  }
  SAME(n, child);
  handled = 0;
  sigval v{};
  v.sival_int = 4711;
  SAME(sigqueue(getpid(), SIGUSR1, v), 0);
  wait_until_handled(1);
  SAME(code, SI_QUEUE);
  SAME(value, 4711);
  SAME(is_blocked(SIGUSR1), false);
  SAME(is_blocked(SIGUSR2), false);
}

static std::atomic<int> sum{0};
static void add_value(int, siginfo_t* info, void*) {
  sum = sum * 10 + info->si_value.sival_int;
  count();
}

// Real-time signals are queued, for the process and for a thread.
void queued() {
  const int number = SIGRTMIN + 3;
  const sigset_t it = set_of({number});
  struct sigaction action {};
  action.sa_sigaction = &add_value;
  action.sa_flags = SA_SIGINFO;
  SAME(sigaction(number, &action, nullptr), 0);
  SAME(pthread_sigmask(SIG_BLOCK, &it, nullptr), 0);
  for (const bool to_thread : {false, true}) {
    handled = 0;
    sum = 0;
    for (int i = 1; i <= 3; ++i) {
      sigval v{};
      v.sival_int = i;
      SAME(to_thread ? pthread_sigqueue(pthread_self(), number, v) : sigqueue(getpid(), number, v),
           0);
    }
    SAME(handled, 0);
    SAME(pthread_sigmask(SIG_UNBLOCK, &it, nullptr), 0);
    wait_until_handled(3);
    SAME(sum, 123);
    SAME(pthread_sigmask(SIG_BLOCK, &it, nullptr), 0);
  }
  SAME(raise(number), 0);
  SAME(raise(number), 0);
  for (const bool is_left : {true, false}) {
    int got = 0;
    sigset_t now;
    SAME(sigwait(&it, &got), 0);
    SAME(got, number);
    SAME(sigpending(&now), 0);
    SAME(sigismember(&now, number), is_left);
  }
  SAME(pthread_sigmask(SIG_UNBLOCK, &it, nullptr), 0);
}

}  // namespace process_signals
