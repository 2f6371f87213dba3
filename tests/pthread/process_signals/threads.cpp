// SPDX-License-Identifier: Apache-2.0
// Other threads than main(): whose waits end, and handlers that post to all of them, in storms too.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <thread>
#include <vector>

#include "parts.hpp"
#include "support.hpp"

namespace process_signals {

// main() has blocked it, and one thread has not: that one's waits end.
void another_thread() {
  const sigset_t usr2 = set_of({SIGUSR2});
  handle(SIGUSR2, 0);
  SAME(pthread_sigmask(SIG_BLOCK, &usr2, nullptr), 0);
  const a_pipe p;
  sem_t never;
  SAME(sem_init(&never, 0, 0), 0);
  for (const bool reads : {true, false}) {
    std::atomic<bool> ended{false};
    std::thread t([&] {
      char c = 0;
      SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
      interrupted(reads ? read(p.in, &c, 1) : sem_wait(&never));
      ended = true;
      count();
    });
    // One of these at least comes once it waits. The count is from before the look at `ended`: it
    // grows by the handler, or by the end of the thread, which leaves what comes then to nobody.
    for (int before = handled; !ended; before = handled) {
      SAME(kill(getpid(), SIGUSR2), 0);
      wait_until_handled(before + 1);
      sched_yield();
    }
    t.join();
  }
  // What came after its end.
  const timespec at_once{0, 0};
  (void)sigtimedwait(&usr2, nullptr, &at_once);
  SAME(pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr), 0);
}

// Handlers post, whatever they interrupt.
static sem_t posted;
static void post(int) { sem_post(&posted); }

void posting() {
  SAME(sem_init(&posted, 0, 0), 0);
  handle(SIGALRM, SA_RESTART, &post);
  const ticks often(100);
  std::vector<std::thread> all;
  for (int i = 0; i < 3; ++i)
    all.emplace_back([] {
      for (int k = 0; k < 100; ++k) {
        while (sem_wait(&posted) != 0) SAME(errno, EINTR);
      }
    });
  for (int k = 0; k < 100; ++k) {
    std::thread([] {}).join();
    while (sem_wait(&posted) != 0) SAME(errno, EINTR);
  }
  for (std::thread& t : all) t.join();
}

// So many that they cannot all be handled, while main() is in the runtime nearly all the time: who
// waited for those that come meanwhile would need many minutes.
void storm() {
  SAME(sem_init(&posted, 0, 0), 0);
  handle(SIGALRM, SA_RESTART, &post);
  std::atomic<bool> ended{false};
  std::thread sends;
  {
    const ticks always(20);
    sends = std::thread([&] {
      while (!ended) {
        for (int i = 0; i < 100; ++i) SAME(kill(getpid(), SIGALRM), 0);
        sched_yield();
      }
    });
    for (int i = 0; i < 20'000; ++i) {
      SAME(sem_post(&posted), 0);
      while (sem_wait(&posted) != 0) SAME(errno, EINTR);
    }
  }
  ended = true;
  sends.join();
  SAME(signal(SIGALRM, SIG_IGN) == &post, true);
}

}  // namespace process_signals
