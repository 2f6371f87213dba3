// SPDX-License-Identifier: Apache-2.0
// Handlers in a child of this process, whichever thread of it forks.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace process_signals
