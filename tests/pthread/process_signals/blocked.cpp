// SPDX-License-Identifier: Apache-2.0
// What is blocked: it comes when it is let in, and not before.
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>

#include "parts.hpp"
#include "support.hpp"

namespace process_signals {

void blocked() {
  const sigset_t usr2 = set_of({SIGUSR2});
  handle(SIGUSR2, 0);
  SAME(pthread_sigmask(SIG_BLOCK, &usr2, nullptr), 0);
  SAME(kill(getpid(), SIGUSR2), 0);
  SAME(handled, 0);
  sigset_t now;
  SAME(sigpending(&now), 0);
  SAME(sigismember(&now, SIGUSR2), 1);
  siginfo_t info{};
  SAME(sigwaitinfo(&usr2, &info), SIGUSR2);
  SAME(info.si_signo, SIGUSR2);
  SAME(info.si_pid, getpid());
  const timespec little{0, 1000};
  const timespec nothing{0, 0};
  SAME(sigtimedwait(&usr2, &info, &little), -1);
  SAME(errno, EAGAIN);
  SAME(sigtimedwait(&usr2, &info, &nothing), -1);
  SAME(errno, EAGAIN);
  const timespec invalid{0, -1};
  SAME(sigtimedwait(&usr2, &info, &invalid), -1);
  SAME(errno, EINVAL);
  int number = 0;
  SAME(kill(getpid(), SIGUSR2), 0);
  SAME(sigwait(&usr2, &number), 0);
  SAME(number, SIGUSR2);
  const int fd = signalfd(-1, &usr2, 0);
  SAME(kill(getpid(), SIGUSR2), 0);
  signalfd_siginfo about{};
  SAME(read(fd, &about, sizeof about), sizeof about);
  SAME(about.ssi_signo, SIGUSR2);
  close(fd);
  SAME(handled, 0);
  // Let in by the wait alone, and before it or while it lasts.
  SAME(kill(getpid(), SIGUSR2), 0);
  const sigset_t none = set_of({});
  interrupted(sigsuspend(&none));
  SAME(handled, 1);
  SAME(is_blocked(SIGUSR2), true);
  const pid_t child = fork();
  if (child == 0) {
    kill(getppid(), SIGUSR2);
    _exit(0);
  }
  interrupted(sigsuspend(&none));
  SAME(handled, 2);
  SAME(waitpid(child, nullptr, 0), child);
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
  // Not once it is blocked.
  handle(SIGALRM, 0);
  const sigset_t alarms = set_of({SIGALRM});
  const ticks often;
  for (int i = 0; i < 50; ++i) {
    wait_until_handled(handled + 1);
    // Another time between two of them. Where others want the cores a yield takes milliseconds.
    for (int j = 0; j < 10'000 * i; ++j) asm volatile("" : : : "memory");
    SAME(pthread_sigmask(SIG_BLOCK, &alarms, nullptr), 0);
    const int before = handled;
    for (int j = 0; j < 20; ++j) sched_yield();
    SAME(handled, before);
    SAME(pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr), 0);
  }
}

// Handlers that change masks, as many do, and give them back.
static std::atomic<bool> mask_was_right{true};
static void hold_and_restore(int number) {
  const sigset_t it = set_of({number});
  sigset_t before;
  sigset_t now;
  if (sigprocmask(SIG_BLOCK, &it, &before) != 0 || sigismember(&before, number) != 1)
    mask_was_right = false;
  if (sigprocmask(SIG_SETMASK, &before, nullptr) != 0 ||
      sigprocmask(SIG_BLOCK, nullptr, &now) != 0 || sigismember(&now, number) != 1)
    mask_was_right = false;
  count();
}

// More come afterwards, whether main() waits or computes.
void masks_in_handlers() {
  handle(SIGALRM, 0, &hold_and_restore);
  const a_pipe p;
  sem_t never;
  SAME(sem_init(&never, 0, 0), 0);
  for (int i = 0; i < 20; ++i) {
    const ticks often;
    interrupted(sem_wait(&never));
    pollfd one{p.in, POLLIN, 0};
    interrupted(poll(&one, 1, -1));
    const int before = handled;
    while (handled < before + 2) asm volatile("" : : : "memory");
    SAME(is_blocked(SIGALRM), false);
  }
  SAME(mask_was_right, true);
}

}  // namespace process_signals
