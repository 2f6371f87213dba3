// SPDX-License-Identifier: Apache-2.0
// The lock of an interpreter, as Python has it: who waits for it asks its owner every 5 ms to leave
// it, and the owner, which computes, waits until another one has it. Everybody has its turn, run
// natively, and as it is under `strata pthread` with fewer workers than threads. Otherwise it does
// not end.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { computing = 4, rounds = 3 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, handed_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left, handed = PTHREAD_COND_INITIALIZER;
static int locked, last;
static long changes;
static atomic_int wanted, stop;

static void lock(int me) {
  pthread_mutex_lock(&mutex);
  while (locked) {
    const long before = changes;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 5000000;
    if (until.tv_nsec >= 1000000000) {
      until.tv_nsec -= 1000000000;
      ++until.tv_sec;
    }
    if (pthread_cond_timedwait(&left, &mutex, &until) == ETIMEDOUT && changes == before) wanted = 1;
  }
  pthread_mutex_lock(&handed_mutex);
  locked = 1;
  if (last != me) ++changes;
  last = me;
  wanted = 0;
  pthread_cond_signal(&handed);
  pthread_mutex_unlock(&handed_mutex);
  pthread_mutex_unlock(&mutex);
}

static void leave(int me) {
  const int hands_on = wanted;
  pthread_mutex_lock(&mutex);
  locked = 0;
  pthread_cond_signal(&left);
  pthread_mutex_unlock(&mutex);
  pthread_mutex_lock(&handed_mutex);
  while (hands_on && last == me && !stop) pthread_cond_wait(&handed, &handed_mutex);
  pthread_mutex_unlock(&handed_mutex);
}

static void* compute(void* number) {
  const int me = *(int*)number;
  lock(me);
  while (!stop) {
    if (!wanted) continue;
    leave(me);
    lock(me);
  }
  leave(me);
  return NULL;
}

int main(void) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&left, &monotonic);
  pthread_t threads[computing];
  int numbers[computing];
  lock(0);
  for (int i = 0; i < computing; ++i) {
    numbers[i] = i + 1;
    if (pthread_create(&threads[i], NULL, compute, &numbers[i]) != 0) return 1;
  }
  for (int i = 0; i < rounds; ++i) {
    leave(0);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    lock(0);
  }
  stop = 1;
  leave(0);
  for (int i = 0; i < computing; ++i) pthread_join(threads[i], NULL);
  return 0;
}
