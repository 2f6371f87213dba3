// SPDX-License-Identifier: Apache-2.0
// Handlers in a child of this process, whichever thread of it forks.
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <thread>

#include "parts.hpp"
#include "support.hpp"

namespace process_signals {

// f() in a child of the thread that calls this.
template <class F>
static void is_right_in_a_child(F f) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    wrong = 0;
    f();
    std::fflush(stdout);
    _exit(wrong == 0 ? 0 : 1);
  }
  int status = -1;
  SAME(waitpid(child, &status, 0), child);
  SAME(status, 0);
}

// In a child of another thread than main(), which is not there, and neither is who waits.
void child_of_a_thread() {
  std::thread parent([] {
    is_right_in_a_child([] {
      handle(SIGALRM, 0);
      const ticks often;
      interrupted(nanosleep(&long_time, nullptr));
      const sigset_t alarms = set_of({SIGALRM});
      SAME(pthread_sigmask(SIG_BLOCK, &alarms, nullptr), 0);
      std::thread waits([&] {
        SAME(pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr), 0);
        interrupted(pause());
      });
      waits.join();
      SAME(pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr), 0);
      const int before = handled;
      while (handled < before + 5) sched_yield();  // while it runs, too
    });
  });
  parent.join();
}

// In a child whose thread is the only one.
void in_a_child() {
  is_right_in_a_child([] {
    handle(SIGALRM, 0);
    const ticks often;
    interrupted(nanosleep(&long_time, nullptr));
    interrupted(pause());
    std::thread([] {}).join();
  });
}

// A handler forks, and returns in the child, too: that ends, where the handler has run in the place
// of a thread that it does not have as well as where it goes on as a copy of that.
static pid_t the_process;
static std::atomic<pid_t> forked{0};
static void fork_here(int) {
  const int error = errno;
  const pid_t child = fork();
  if (child == 0)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  else
    forked = child;
  errno = error;
}
// f() in the only thread that takes the signal, which is sent then.
template <class F>
static void forked_by_its_handler(F f) {
  the_process = getpid();
  forked = 0;
  handle(SIGUSR2, 0, &fork_here);
  std::atomic<bool> is_there{false};
  std::thread takes([&] {
    f(is_there);
    if (getpid() != the_process) _exit(0);
    while (forked == 0) sched_yield();
    int status = 0;
    SAME(waitpid(forked, &status, 0), forked);
    SAME(WIFEXITED(status), true);
  });
  while (!is_there) sched_yield();
  SAME(kill(getpid(), SIGUSR2), 0);
  takes.join();
}

void forks_in_a_handler() {
  const sigset_t usr2 = set_of({SIGUSR2});
  sigset_t none;
  sigemptyset(&none);
  std::fflush(stdout);
  SAME(pthread_sigmask(SIG_BLOCK, &usr2, nullptr), 0);
  // It computes, and does not come to its handlers itself.
  forked_by_its_handler([&](std::atomic<bool>& is_there) {
    SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
    is_there = true;
    while (forked == 0 && getpid() == the_process) asm volatile("" : : : "memory");
  });
  forked_by_its_handler([&](std::atomic<bool>& is_there) {
    is_there = true;
    interrupted(ppoll(nullptr, 0, nullptr, &none));
  });
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
  signal(SIGUSR2, SIG_DFL);
}

// As programs do that start others: the child of a vfork() sets all signals to what they were, and
// has its parent's memory. What comes for the parent afterwards is handled as ever.
static void handled_after_a_child_has_set_its_signals(bool is_another_user) {
  handle(SIGUSR2, 0);
  for (int i = 1; i <= 20; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      constexpr uid_t nobody = 65534;
      // By the kernel: the C library's would change the user of all threads that it knows, which
      // are the parent's.
      if (is_another_user) syscall(SYS_setresuid, nobody, nobody, nobody);
      struct sigaction usual {};
      usual.sa_handler = SIG_DFL;
      for (int number = 1; number < NSIG; ++number) sigaction(number, &usual, nullptr);
      _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) != child) SAME(errno, EINTR);
    SAME(status, 0);
    std::thread sends([] { SAME(kill(getpid(), SIGUSR2), 0); });
    wait_until_handled(i);
    sends.join();
  }
}

void sets_signals_in_a_child() { handled_after_a_child_has_set_its_signals(false); }

// It may send the parent no signal any more.
void sets_signals_as_another_user() {
  if (geteuid() == 0) handled_after_a_child_has_set_its_signals(true);
}

}  // namespace process_signals
