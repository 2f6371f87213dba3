// SPDX-License-Identifier: Apache-2.0
// Signals for the process that come when it is least convenient: natively, and under `strata
// pthread`. Each is sent when the one before has been handled, so one that is lost stops the
// program. Status 0 if all is right.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "process_signals/support.hpp"

namespace process_signals {
namespace {

// One that comes while main() is in the handler, on whatever worker that runs, is handled when it
// ends: at the first the handler sends another.
std::atomic<bool> sends_another{false};
void count_and_send(int) {
  if (sends_another.exchange(false)) kill(getpid(), SIGALRM);
  count();
}

void in_its_handler() {
  handle(SIGALRM, 0, &count_and_send);
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
      part{"at_the_beginning", &at_the_beginning},
      part{"nobody_elses", &nobody_elses},
  };
  SAME(sem_init(&one_handled, 0, 0), 0);
  run_parts(parts, argc, argv);
  return status_of_all();
}
