// SPDX-License-Identifier: Apache-2.0
// What goes on whatever handlers run: waits begun again, waits for locks and threads, and a loop.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "parts.hpp"
#include "support.hpp"

namespace process_signals {

// Begun again, until a handler brings what it waits for.
static int told_by_handler = -1;
static sem_t posted_by_handler;
static void bring(int) {
  if (count() == 3) {
    (void)!write(told_by_handler, "x", 1);
    sem_post(&posted_by_handler);
  }
}

void restarts() {
  const a_pipe p;
  told_by_handler = p.out;
  SAME(sem_init(&posted_by_handler, 0, 0), 0);
  char c = 0;
  handle(SIGALRM, SA_RESTART, &bring);
  {
    const ticks often;
    SAME(read(p.in, &c, 1), 1);
    SAME(handled >= 3, true);
    SAME(sem_wait(&posted_by_handler), 0);
    handled = 0;
    SAME(sem_wait(&posted_by_handler), 0);
    SAME(handled >= 3, true);
    SAME(read(p.in, &c, 1), 1);
  }
  SAME(c, 'x');
}

// Waits for locks and threads end by nothing but what they are for.
void goes_on() {
  handle(SIGALRM, 0);
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  SAME(pthread_mutex_lock(&m), 0);
  const ticks often;
  std::thread t([&] {
    SAME(pthread_mutex_lock(&m), 0);
    SAME(pthread_mutex_unlock(&m), 0);
  });
  while (handled < 5) sched_yield();  // not a wait: handlers run while others wait for this one
  SAME(pthread_mutex_unlock(&m), 0);
  t.join();
  std::thread waits([] {
    const int before = handled;
    while (handled < before + 5) sched_yield();
  });
  waits.join();
}

// main() does not wait at all.
void computes() {
  handle(SIGALRM, 0);
  const ticks often;
  unsigned long n = 0;
  while (handled < 20) asm volatile("" : "+r"(n) : : "memory");
}

// Nor does it where the signal comes while a thread runs that sends it: the handler interrupts
// main() all the same, whatever OS thread they share.
static pthread_t of_main;
static std::atomic<int> elsewhere{0};
static void look_where(int) {
  if (pthread_equal(pthread_self(), of_main) == 0) ++elsewhere;
  count();
}

void computes_beside_who_sends() {
  of_main = pthread_self();
  elsewhere = 0;
  handle(SIGUSR2, 0, &look_where);
  for (int i = 1; i <= 10; ++i) {
    // While a thread is made all signals are blocked for its maker.
    std::atomic<bool> is_made{false};
    std::thread sends([&is_made] {
      while (!is_made) sched_yield();
      SAME(kill(getpid(), SIGUSR2), 0);
    });
    is_made = true;
    while (handled < i) asm volatile("" : : : "memory");
    sends.join();
  }
  SAME(elsewhere, 0);
}

}  // namespace process_signals
