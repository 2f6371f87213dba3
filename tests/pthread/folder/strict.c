/* SPDX-License-Identifier: Apache-2.0 */
/* A source of no particular time: C90, and of POSIX what the feature macros give it, which may be
   none. With an argument its threads must be strata's. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define REQUIRE(condition)                                             \
  do {                                                                 \
    if (!(condition)) {                                                \
      fprintf(stderr, "line %d: %s is false\n", __LINE__, #condition); \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static sem_t never;
static int arrived, values, released, ours;

static void count_value(void* value) {
  (void)value;
  ++values;
}
static void make_key(void) { REQUIRE(pthread_key_create(&key, count_value) == 0); }

static void* meet(void* a) {
  if (ours) REQUIRE((pthread_self() >> 63) == 1);
  REQUIRE(pthread_once(&once, make_key) == 0);
  pthread_mutex_lock(&mutex);
  if (++arrived == 2) pthread_cond_broadcast(&came);
  while (arrived < 2) pthread_cond_wait(&came, &mutex);
  pthread_mutex_unlock(&mutex);
  sched_yield();
  return a;
}

static void release(void* a) {
  (void)a;
  ++released;
}
static void* be_cancelled(void* a) {
  REQUIRE(pthread_setspecific(key, a) == 0);
  pthread_cleanup_push(release, a);
  sem_wait(&never);
  pthread_cleanup_pop(0);
  return NULL;
}

#ifdef PTHREAD_RWLOCK_INITIALIZER
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void read_and_write(void) {
  REQUIRE(pthread_rwlock_rdlock(&lock) == 0);
  REQUIRE(pthread_rwlock_trywrlock(&lock) == EBUSY);
  REQUIRE(pthread_rwlock_unlock(&lock) == 0);
}
#else
static void read_and_write(void) {}
#endif

#ifdef PTHREAD_BARRIER_SERIAL_THREAD
static void meet_alone(void) {
  pthread_barrier_t barrier;
  pthread_spinlock_t spin;
  REQUIRE(pthread_barrier_init(&barrier, NULL, 1) == 0);
  REQUIRE(pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
  REQUIRE(pthread_barrier_destroy(&barrier) == 0);
  REQUIRE(pthread_spin_init(&spin, 0) == 0);
  REQUIRE(pthread_spin_lock(&spin) == 0);
  REQUIRE(pthread_spin_unlock(&spin) == 0);
}
#else
static void meet_alone(void) {}
#endif

#if defined _POSIX_C_SOURCE && _POSIX_C_SOURCE >= 199506L
static void* signal_itself(void* a) {
  sigset_t set;
  struct timespec a_moment = {0, 1000};
  int number = 0;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
  REQUIRE(pthread_kill(pthread_self(), SIGUSR1) == 0);
  REQUIRE(sigwait(&set, &number) == 0 && number == SIGUSR1);
  REQUIRE(nanosleep(&a_moment, NULL) == 0);
  return a;
}
#else
static void* signal_itself(void* a) { return a; }
#endif

static void* join(pthread_t thread) {
  void* result = NULL;
  REQUIRE(pthread_join(thread, &result) == 0);
  return result;
}

int main(int argc, char** argv) {
  pthread_t a, b;
  int one, other;
  (void)argv;
  ours = argc > 1;
  REQUIRE(sem_init(&never, 0, 0) == 0);
  REQUIRE(pthread_create(&a, NULL, meet, &one) == 0);
  REQUIRE(pthread_create(&b, NULL, meet, &other) == 0);
  REQUIRE(join(a) == &one && join(b) == &other);
  REQUIRE(pthread_create(&a, NULL, be_cancelled, &one) == 0);
  REQUIRE(pthread_create(&b, NULL, signal_itself, &other) == 0);
  REQUIRE(join(b) == &other);
  REQUIRE(pthread_cancel(a) == 0);
  REQUIRE(join(a) == PTHREAD_CANCELED);
  REQUIRE(released == values && released <= 1);
  read_and_write();
  meet_alone();
  return 0;
}
