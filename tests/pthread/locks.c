/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes, condition variables, read-write locks, barriers, spin locks, semaphores. */
#include "check.h"

#include <limits.h>

static pthread_mutex_t made(int kind) {
  pthread_mutex_t m;
  pthread_mutexattr_t a;
  pthread_mutexattr_init(&a);
  SAME(pthread_mutexattr_settype(&a, kind), 0);
  SAME(pthread_mutex_init(&m, &a), 0);
  pthread_mutexattr_destroy(&a);
  return m;
}
#define ELSEWHERE(name, type, call)                          \
  static void* name(void* a) { return (void*)(long)call((type*)a); }
ELSEWHERE(trylock_there, pthread_mutex_t, pthread_mutex_trylock)
ELSEWHERE(unlock_there, pthread_mutex_t, pthread_mutex_unlock)
ELSEWHERE(trywrite_there, pthread_rwlock_t, pthread_rwlock_trywrlock)
ELSEWHERE(spin_trylock_there, pthread_spinlock_t, pthread_spin_trylock)

CASE(mutex_static) {
  static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  SAME(pthread_mutex_lock(&m), 0);
  SAME((long)end(begin(trylock_there, &m)), EBUSY);
  SAME(pthread_mutex_trylock(&m), EBUSY);
  SAME(pthread_mutex_unlock(&m), 0);
  SAME(pthread_mutex_trylock(&m), 0);
  SAME(pthread_mutex_unlock(&m), 0);
  SAME(pthread_mutex_destroy(&m), 0);
}
CASE(mutex_errorcheck) {
  pthread_mutex_t m = made(PTHREAD_MUTEX_ERRORCHECK);
  SAME(pthread_mutex_unlock(&m), EPERM);
  SAME(pthread_mutex_lock(&m), 0);
  SAME(pthread_mutex_lock(&m), EDEADLK);
  SAME(pthread_mutex_trylock(&m), EBUSY);
  SAME((long)end(begin(unlock_there, &m)), EPERM);
  SAME(pthread_mutex_destroy(&m), EBUSY);
  SAME(pthread_mutex_unlock(&m), 0);
  SAME(pthread_mutex_unlock(&m), EPERM);
  SAME(pthread_mutex_destroy(&m), 0);
}
static void* lock_and_end(void* m) {
  SAME(pthread_mutex_lock(m), 0);
  return NULL;
}
static void* cannot_lock(void* m) {
  struct timespec past = from_now(CLOCK_REALTIME, -1);
  SAME(pthread_mutex_trylock(m), EBUSY);
  SAME(pthread_mutex_unlock(m), EPERM);
  SAME(pthread_mutex_timedlock(m, &past), ETIMEDOUT);
  return NULL;
}
/* Those who come later may have its stack. */
CASE(mutex_of_a_thread_that_has_ended_stays_locked) {
  const int kinds[] = {PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
  for (int k = 0; k < 2; ++k) {
    pthread_mutex_t m = made(kinds[k]);
    end(begin(lock_and_end, &m));
    for (int i = 0; i < 8; ++i) end(begin(cannot_lock, &m));
    cannot_lock(&m);
  }
}
CASE(mutex_recursive) {
  pthread_mutex_t m = made(PTHREAD_MUTEX_RECURSIVE);
  SAME(pthread_mutex_lock(&m), 0);
  SAME(pthread_mutex_lock(&m), 0);
  SAME(pthread_mutex_trylock(&m), 0);
  SAME((long)end(begin(unlock_there, &m)), EPERM);
  SAME(pthread_mutex_unlock(&m), 0);
  SAME(pthread_mutex_unlock(&m), 0);
  SAME((long)end(begin(trylock_there, &m)), EBUSY);
  SAME(pthread_mutex_unlock(&m), 0);
  SAME(pthread_mutex_unlock(&m), EPERM);
  SAME(pthread_mutex_destroy(&m), 0);
}
CASE(mutex_static_of_other_kinds) {
  static pthread_mutex_t r = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  static pthread_mutex_t e = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  static pthread_mutex_t a = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
  SAME(pthread_mutex_lock(&r), 0);
  SAME(pthread_mutex_lock(&r), 0);
  SAME(pthread_mutex_unlock(&r), 0);
  SAME(pthread_mutex_unlock(&r), 0);
  SAME(pthread_mutex_lock(&e), 0);
  SAME(pthread_mutex_lock(&e), EDEADLK);
  SAME(pthread_mutex_unlock(&e), 0);
  SAME(pthread_mutex_lock(&a), 0);
  SAME(pthread_mutex_unlock(&a), 0);
}
CASE(mutex_timed) {
  pthread_mutex_t m = made(PTHREAD_MUTEX_NORMAL);
  pthread_mutex_lock(&m);
  struct timespec soon = from_now(CLOCK_REALTIME, 5), past = {1, 0};
  SAME(pthread_mutex_timedlock(&m, &soon), ETIMEDOUT);
  SAME(pthread_mutex_timedlock(&m, &past), ETIMEDOUT);
  soon = from_now(CLOCK_MONOTONIC, 5);
  SAME(pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
  SAME(pthread_mutex_clocklock(&m, 12345, &soon), EINVAL);
  soon.tv_nsec = 1000000000;
  SAME(pthread_mutex_timedlock(&m, &soon), EINVAL);
  soon.tv_nsec = -1;
  SAME(pthread_mutex_timedlock(&m, &soon), EINVAL);
  pthread_mutex_unlock(&m);
  /* A free one is taken, whatever the time. */
  SAME(pthread_mutex_timedlock(&m, &past), 0);
  pthread_mutex_unlock(&m);
}
CASE(mutex_timed_of_oneself) {
  pthread_mutex_t m = made(PTHREAD_MUTEX_ERRORCHECK);
  struct timespec soon = from_now(CLOCK_REALTIME, 1000);
  pthread_mutex_lock(&m);
  SAME(pthread_mutex_timedlock(&m, &soon), EDEADLK);
  pthread_mutex_unlock(&m);
}
CASE(mutex_attributes) {
  pthread_mutexattr_t a;
  int kind;
  SAME(pthread_mutexattr_init(&a), 0);
  SAME(pthread_mutexattr_gettype(&a, &kind), 0);
  SAME(kind, PTHREAD_MUTEX_DEFAULT);
  SAME(pthread_mutexattr_settype(&a, 77), EINVAL);
  SAME(pthread_mutexattr_destroy(&a), 0);
}
struct counted {
  pthread_mutex_t m;
  long n;
};
static void* count(void* a) {
  struct counted* c = a;
  for (int i = 0; i < 500; ++i) {
    pthread_mutex_lock(&c->m);
    const long n = c->n;
    if (i % 50 == 0) sched_yield();
    c->n = n + 1;
    pthread_mutex_unlock(&c->m);
  }
  return NULL;
}
CASE(mutex_excludes) {
  struct counted c = {PTHREAD_MUTEX_INITIALIZER, 0};
  pthread_t t[10];
  for (int i = 0; i < 10; ++i) t[i] = begin(count, &c);
  for (int i = 0; i < 10; ++i) end(t[i]);
  SAME(c.n, 5000);
}

/* ---- condition variables ---- */
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, changed = PTHREAD_COND_INITIALIZER;
static int tokens, waiting, woken;
static void* wait_for_token(void* a) {
  pthread_mutex_lock(&m);
  ++waiting;
  pthread_cond_signal(&changed);
  while (tokens == 0) SAME(pthread_cond_wait(&cond, &m), 0);
  --tokens;
  ++woken;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&m);
  return a;
}
static void until(const int* count, int n) {
  pthread_mutex_lock(&m);
  while (*count != n) SAME(pthread_cond_wait(&changed, &m), 0);
  pthread_mutex_unlock(&m);
}
static void until_all_wait(int n) { until(&waiting, n); }
CASE(cond_signal_and_broadcast) {
  pthread_t t[10];
  tokens = waiting = woken = 0;
  for (int i = 0; i < 10; ++i) t[i] = begin(wait_for_token, NULL);
  until_all_wait(10);
  pthread_mutex_lock(&m);
  tokens = 1;
  SAME(pthread_cond_signal(&cond), 0);
  pthread_mutex_unlock(&m);
  until(&woken, 1);
  pthread_mutex_lock(&m);
  SAME(woken, 1);
  tokens = 9;
  SAME(pthread_cond_broadcast(&cond), 0);
  pthread_mutex_unlock(&m);
  for (int i = 0; i < 10; ++i) end(t[i]);
  SAME(woken, 10);
}
CASE(cond_times_out_with_the_mutex) {
  pthread_mutex_t e = made(PTHREAD_MUTEX_ERRORCHECK);
  pthread_cond_t c = PTHREAD_COND_INITIALIZER;
  struct timespec soon = from_now(CLOCK_REALTIME, 5), past = {1, 0};
  pthread_mutex_lock(&e);
  SAME(pthread_cond_timedwait(&c, &e, &soon), ETIMEDOUT);
  SAME(pthread_mutex_lock(&e), EDEADLK);
  SAME(pthread_cond_timedwait(&c, &e, &past), ETIMEDOUT);
  SAME(pthread_mutex_unlock(&e), 0);
  SAME(pthread_cond_destroy(&c), 0);
}
CASE(cond_bad_time) {
  pthread_cond_t c = PTHREAD_COND_INITIALIZER;
  struct timespec bad = {time(NULL) + 100, -5};
  pthread_mutex_lock(&m);
  SAME(pthread_cond_timedwait(&c, &m, &bad), EINVAL);
  pthread_mutex_unlock(&m);
}
CASE(cond_of_another_clock) {
  pthread_condattr_t a;
  pthread_cond_t c;
  clockid_t clock;
  pthread_condattr_init(&a);
  SAME(pthread_condattr_setclock(&a, CLOCK_MONOTONIC), 0);
  SAME(pthread_condattr_getclock(&a, &clock), 0);
  SAME(clock, CLOCK_MONOTONIC);
  SAME(pthread_condattr_setclock(&a, CLOCK_PROCESS_CPUTIME_ID), EINVAL);
  SAME(pthread_cond_init(&c, &a), 0);
  struct timespec soon = from_now(CLOCK_MONOTONIC, 5), now;
  pthread_mutex_lock(&m);
  SAME(pthread_cond_timedwait(&c, &m, &soon), ETIMEDOUT);
  clock_gettime(CLOCK_MONOTONIC, &now);
  CHECK(now.tv_sec > soon.tv_sec || (now.tv_sec == soon.tv_sec && now.tv_nsec >= soon.tv_nsec));
  soon = from_now(CLOCK_REALTIME, 5);
  SAME(pthread_cond_clockwait(&c, &m, CLOCK_REALTIME, &soon), ETIMEDOUT);
  SAME(pthread_cond_clockwait(&c, &m, 12345, &soon), EINVAL);
  pthread_mutex_unlock(&m);
  pthread_cond_destroy(&c);
  pthread_condattr_destroy(&a);
}
CASE(cond_signal_without_waiters_is_forgotten) {
  pthread_cond_t c = PTHREAD_COND_INITIALIZER;
  struct timespec soon = from_now(CLOCK_REALTIME, 3);
  SAME(pthread_cond_signal(&c), 0);
  SAME(pthread_cond_broadcast(&c), 0);
  pthread_mutex_lock(&m);
  SAME(pthread_cond_timedwait(&c, &m, &soon), ETIMEDOUT);
  pthread_mutex_unlock(&m);
}
CASE(cond_keeps_the_depth_of_a_recursive_mutex) {
  pthread_mutex_t r = made(PTHREAD_MUTEX_RECURSIVE);
  pthread_cond_t c = PTHREAD_COND_INITIALIZER;
  struct timespec soon = from_now(CLOCK_REALTIME, 3);
  pthread_mutex_lock(&r);
  SAME(pthread_cond_timedwait(&c, &r, &soon), ETIMEDOUT);
  SAME(pthread_mutex_unlock(&r), 0);
  SAME(pthread_mutex_unlock(&r), EPERM);
}
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static atomic_int handler_had_it;
static void unlock_checked(void* a) {
  (void)a;
  atomic_store(&handler_had_it, pthread_mutex_unlock(&checked) == 0);
}
static void* wait_for_ever(void* a) {
  pthread_mutex_lock(&checked);
  pthread_cleanup_push(unlock_checked, NULL);
  for (;;) {
    atomic_store((atomic_int*)a, 1);
    pthread_cond_wait(&cond, &checked);
  }
  pthread_cleanup_pop(0);
  return NULL;
}
CASE(cond_cancelled_has_the_mutex) {
  atomic_int started = 0;
  atomic_store(&handler_had_it, 0);
  pthread_t t = begin(wait_for_ever, &started);
  await(&started, 1);
  pthread_cancel(t);
  CHECK(end(t) == PTHREAD_CANCELED);
  SAME(handler_had_it, 1);
  SAME(pthread_mutex_lock(&checked), 0);
  SAME(pthread_mutex_unlock(&checked), 0);
}
/* Destroying at once after waking everybody is allowed. */
static void* wait_then_count(void* a) {
  pthread_mutex_lock(&m);
  ++waiting;
  pthread_cond_signal(&changed);
  while (tokens == 0) pthread_cond_wait(a, &m);
  pthread_mutex_unlock(&m);
  return NULL;
}
CASE(cond_destroyed_after_broadcast) {
  pthread_t t[5];
  for (int round = 0; round < 20; ++round) {
    pthread_cond_t* c = malloc(sizeof *c);
    pthread_cond_init(c, NULL);
    tokens = waiting = 0;
    for (int i = 0; i < 5; ++i) t[i] = begin(wait_then_count, c);
    until_all_wait(5);
    pthread_mutex_lock(&m);
    tokens = 1;
    pthread_cond_broadcast(c);
    pthread_mutex_unlock(&m);
    SAME(pthread_cond_destroy(c), 0);
    memset(c, 0xff, sizeof *c);
    free(c);
    for (int i = 0; i < 5; ++i) end(t[i]);
  }
}
/* The C library waits until nobody does. */
CASE(cond_is_not_destroyed_while_awaited) {
  if (!on_strata()) return;
  pthread_cond_t c = PTHREAD_COND_INITIALIZER;
  tokens = waiting = 0;
  pthread_t t = begin(wait_then_count, &c);
  until_all_wait(1);
  SAME(pthread_cond_destroy(&c), EBUSY);
  pthread_mutex_lock(&m);
  tokens = 1;
  SAME(pthread_cond_signal(&c), 0);
  pthread_mutex_unlock(&m);
  end(t);
  SAME(pthread_cond_destroy(&c), 0);
}

/* ---- read-write locks ---- */
CASE(rwlock_readers_share) {
  pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
  SAME(pthread_rwlock_rdlock(&l), 0);
  SAME(pthread_rwlock_rdlock(&l), 0);
  SAME(pthread_rwlock_tryrdlock(&l), 0);
  SAME(pthread_rwlock_trywrlock(&l), EBUSY);
  SAME((long)end(begin(trywrite_there, &l)), EBUSY);
  for (int i = 0; i < 3; ++i) SAME(pthread_rwlock_unlock(&l), 0);
  SAME(pthread_rwlock_trywrlock(&l), 0);
  SAME(pthread_rwlock_tryrdlock(&l), EBUSY);
  SAME(pthread_rwlock_trywrlock(&l), EBUSY);
  SAME(pthread_rwlock_unlock(&l), 0);
  SAME(pthread_rwlock_destroy(&l), 0);
}
static void* read_and_end(void* l) {
  SAME(pthread_rwlock_rdlock(l), 0);
  return NULL;
}
CASE(rwlock_may_be_destroyed_when_a_thread_has_left_it_locked) {
  pthread_rwlock_t l;
  SAME(pthread_rwlock_init(&l, NULL), 0);
  if (on_strata()) SAME(pthread_rwlock_unlock(&l), EINVAL); /* the C library counts down */
  end(begin(read_and_end, &l));
  SAME(pthread_rwlock_destroy(&l), 0);
}
CASE(rwlock_deadlock_of_a_writer) {
  pthread_rwlock_t l;
  struct timespec soon = from_now(CLOCK_REALTIME, 1000);
  SAME(pthread_rwlock_init(&l, NULL), 0);
  SAME(pthread_rwlock_wrlock(&l), 0);
  SAME(pthread_rwlock_wrlock(&l), EDEADLK);
  SAME(pthread_rwlock_rdlock(&l), EDEADLK);
  SAME(pthread_rwlock_timedwrlock(&l, &soon), EDEADLK);
  SAME(pthread_rwlock_unlock(&l), 0);
}
static void* time_out_on(void* a) {
  struct timespec soon = from_now(CLOCK_REALTIME, 5), bad = {0, -1};
  SAME(pthread_rwlock_timedrdlock(a, &soon), ETIMEDOUT);
  SAME(pthread_rwlock_timedwrlock(a, &soon), ETIMEDOUT);
  SAME(pthread_rwlock_timedrdlock(a, &bad), EINVAL);
  SAME(pthread_rwlock_timedwrlock(a, &bad), EINVAL);
  soon = from_now(CLOCK_MONOTONIC, 3);
  SAME(pthread_rwlock_clockrdlock(a, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
  SAME(pthread_rwlock_clockwrlock(a, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
  SAME(pthread_rwlock_tryrdlock(a), EBUSY);
  return NULL;
}
static void* write_and_end(void* l) {
  SAME(pthread_rwlock_wrlock(l), 0);
  return NULL;
}
static void* cannot_write(void* l) {
  struct timespec past = from_now(CLOCK_REALTIME, -1);
  SAME(pthread_rwlock_timedwrlock(l, &past), ETIMEDOUT);
  SAME(pthread_rwlock_timedrdlock(l, &past), ETIMEDOUT);
  if (on_strata()) SAME(pthread_rwlock_unlock(l), EPERM); /* of the C library's anybody unlocks */
  return NULL;
}
CASE(rwlock_of_a_writer_that_has_ended_stays_locked) {
  pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
  end(begin(write_and_end, &l));
  for (int i = 0; i < 8; ++i) end(begin(cannot_write, &l));
}
CASE(rwlock_timed) {
  pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
  const struct timespec bad = {0, -1}, past = from_now(CLOCK_BOOTTIME, -1);
  SAME(pthread_rwlock_timedrdlock(&l, &bad), EINVAL);
  SAME(pthread_rwlock_timedwrlock(&l, &bad), EINVAL);
  SAME(pthread_rwlock_clockrdlock(&l, CLOCK_BOOTTIME, &past), EINVAL);
  SAME(pthread_rwlock_clockwrlock(&l, CLOCK_BOOTTIME, &past), EINVAL);
  pthread_rwlock_wrlock(&l);
  end(begin(time_out_on, &l));
  pthread_rwlock_unlock(&l);
}
static void* write_there(void* a) {
  SAME(pthread_rwlock_wrlock(a), 0);
  SAME(pthread_rwlock_unlock(a), 0);
  return NULL;
}
CASE(rwlock_reader_enters_again_past_a_waiting_writer) {
  pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
  pthread_rwlock_rdlock(&l);
  pthread_t t = begin(write_there, &l);
  usleep(5000);
  SAME(pthread_rwlock_rdlock(&l), 0);
  SAME(pthread_rwlock_unlock(&l), 0);
  SAME(pthread_rwlock_unlock(&l), 0);
  end(t);
}
static atomic_int writer_begins;
static void* write_asynchronously(void* a) {
  SAME(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
  atomic_store(&writer_begins, 1);
  pthread_rwlock_wrlock(a);
  return a;
}
/* The C library's are not made for it. */
CASE(rwlock_lets_readers_in_when_its_writer_is_cancelled) {
  if (!on_strata()) return;
  pthread_rwlock_t l;
  pthread_rwlockattr_t a;
  pthread_rwlockattr_init(&a);
  SAME(pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP), 0);
  SAME(pthread_rwlock_init(&l, &a), 0);
  SAME(pthread_rwlock_rdlock(&l), 0);
  atomic_store(&writer_begins, 0);
  pthread_t t = begin(write_asynchronously, &l);
  await(&writer_begins, 1);
  /* It holds readers back as soon as it is queued. */
  while (pthread_rwlock_tryrdlock(&l) == 0) {
    SAME(pthread_rwlock_unlock(&l), 0);
    sched_yield();
  }
  SAME(pthread_rwlock_tryrdlock(&l), EBUSY);
  SAME(pthread_cancel(t), 0);
  CHECK(end(t) == PTHREAD_CANCELED);
  SAME(pthread_rwlock_tryrdlock(&l), 0);
  SAME(pthread_rwlock_unlock(&l), 0);
  SAME(pthread_rwlock_unlock(&l), 0);
  SAME(pthread_rwlock_destroy(&l), 0);
  pthread_rwlockattr_destroy(&a);
}
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static long first, second;
static void* read_or_write(void* a) {
  for (int i = 0; i < 200; ++i) {
    if ((long)a % 3 == 0) {
      pthread_rwlock_wrlock(&shared);
      ++first;
      if (i % 20 == 0) sched_yield();
      ++second;
    } else {
      pthread_rwlock_rdlock(&shared);
      if (i % 20 == 0) sched_yield();
      SAME(first, second);
    }
    pthread_rwlock_unlock(&shared);
  }
  return NULL;
}
CASE(rwlock_excludes) {
  pthread_t t[12];
  first = second = 0;
  for (long i = 0; i < 12; ++i) t[i] = begin(read_or_write, (void*)i);
  for (int i = 0; i < 12; ++i) end(t[i]);
  SAME(first, 800);
  SAME(second, 800);
}

/* ---- barriers ---- */
static pthread_barrier_t barrier;
static atomic_int serials, arrived;
static void* pass(void* a) {
  for (int i = 0; i < 50; ++i) {
    atomic_fetch_add(&arrived, 1);
    const int r = pthread_barrier_wait(&barrier);
    CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    CHECK(atomic_load(&arrived) >= 8 * (i + 1));
    if (r != 0) atomic_fetch_add(&serials, 1);
  }
  return a;
}
CASE(barrier_has_one_serial_thread) {
  pthread_t t[8];
  atomic_store(&serials, 0);
  atomic_store(&arrived, 0);
  SAME(pthread_barrier_init(&barrier, NULL, 8), 0);
  for (int i = 0; i < 8; ++i) t[i] = begin(pass, NULL);
  for (int i = 0; i < 8; ++i) end(t[i]);
  SAME(serials, 50);
  SAME(pthread_barrier_destroy(&barrier), 0);
}
CASE(barrier_of_none_and_one) {
  SAME(pthread_barrier_init(&barrier, NULL, 0), EINVAL);
  SAME(pthread_barrier_init(&barrier, NULL, 1), 0);
  SAME(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD);
  SAME(pthread_barrier_destroy(&barrier), 0);
}
static void* pass_and_destroy(void* a) {
  pthread_barrier_t* b = a;
  if (pthread_barrier_wait(b) == PTHREAD_BARRIER_SERIAL_THREAD) {
    SAME(pthread_barrier_destroy(b), 0);
    memset(b, 0xff, sizeof *b);
    free(b);
  }
  return NULL;
}
CASE(barrier_destroyed_by_the_serial_thread) {
  for (int round = 0; round < 50; ++round) {
    pthread_barrier_t* b = malloc(sizeof *b);
    pthread_barrier_init(b, NULL, 3);
    pthread_t t[3];
    for (int i = 0; i < 3; ++i) t[i] = begin(pass_and_destroy, b);
    for (int i = 0; i < 3; ++i) end(t[i]);
  }
}

static atomic_int tickets;
static void* pass_with_a_ticket(void* a) {
  while (atomic_fetch_add(&tickets, 1) < 400) {
    const int r = pthread_barrier_wait(&barrier);
    CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    if (r != 0) atomic_fetch_add(&serials, 1);
  }
  return a;
}
/* It is as new once two have arrived, whoever is still in there. */
CASE(barrier_used_by_more_threads_than_its_count) {
  pthread_t t[5];
  atomic_store(&serials, 0);
  atomic_store(&tickets, 0);
  SAME(pthread_barrier_init(&barrier, NULL, 2), 0);
  for (int i = 0; i < 5; ++i) t[i] = begin(pass_with_a_ticket, NULL);
  for (int i = 0; i < 5; ++i) end(t[i]);
  SAME(serials, 200);
  SAME(pthread_barrier_destroy(&barrier), 0);
}

/* ---- spin locks ---- */
static pthread_spinlock_t spin;
static long spun;
static void* count_spinning(void* a) {
  for (int i = 0; i < 200; ++i) {
    pthread_spin_lock(&spin);
    const long n = spun;
    if (i % 50 == 0) sched_yield();
    spun = n + 1;
    pthread_spin_unlock(&spin);
  }
  return a;
}
CASE(spin_excludes) {
  pthread_t t[8];
  spun = 0;
  SAME(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
  for (int i = 0; i < 8; ++i) t[i] = begin(count_spinning, NULL);
  for (int i = 0; i < 8; ++i) end(t[i]);
  SAME(spun, 1600);
  SAME(pthread_spin_lock(&spin), 0);
  SAME((long)end(begin(spin_trylock_there, (void*)&spin)), EBUSY);
  SAME(pthread_spin_unlock(&spin), 0);
  SAME(pthread_spin_trylock(&spin), 0);
  SAME(pthread_spin_unlock(&spin), 0);
  SAME(pthread_spin_destroy(&spin), 0);
}
#ifndef STRATA_TEST_TSAN /* which calls handlers from functions that cannot be unwound */
static void leave(int number) { pthread_exit((void*)(long)number); }
static atomic_int spins;
static void* spin_until_left(void* a) {
  atomic_store(&spins, 1);
  pthread_spin_lock(&spin);
  return a;
}
CASE(spin_lock_is_left_by_a_handler) {
  const struct sigaction leaves = {.sa_handler = leave}, usual = {.sa_handler = SIG_DFL};
  SAME(sigaction(SIGUSR1, &leaves, NULL), 0);
  SAME(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
  SAME(pthread_spin_lock(&spin), 0);
  atomic_store(&spins, 0);
  pthread_t t = begin(spin_until_left, NULL);
  await(&spins, 1);
  SAME(pthread_kill(t, SIGUSR1), 0);
  SAME((long)end(t), SIGUSR1);
  /* What that handler has blocked was its thread's. */
  sigset_t now;
  SAME(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
  SAME(sigismember(&now, SIGUSR1), 0);
  SAME(pthread_spin_unlock(&spin), 0);
  SAME(sigaction(SIGUSR1, &usual, NULL), 0);
}
#endif

/* ---- semaphores ---- */
CASE(sem_counts) {
  sem_t s;
  int n = -1;
  SAME(sem_init(&s, 0, 2), 0);
  SAME(sem_getvalue(&s, &n), 0);
  SAME(n, 2);
  SAME(sem_wait(&s), 0);
  SAME(sem_trywait(&s), 0);
  SAME(sem_trywait(&s), -1);
  SAME(errno, EAGAIN);
  SAME(sem_post(&s), 0);
  SAME(sem_getvalue(&s, &n), 0);
  SAME(n, 1);
  SAME(sem_destroy(&s), 0);
}
CASE(sem_limits) {
  sem_t s;
  SAME(sem_init(&s, 0, (unsigned)SEM_VALUE_MAX + 1), -1);
  SAME(errno, EINVAL);
  SAME(sem_init(&s, 0, SEM_VALUE_MAX), 0);
  SAME(sem_post(&s), -1);
  SAME(errno, EOVERFLOW);
  sem_destroy(&s);
}
CASE(sem_timed) {
  sem_t s;
  sem_init(&s, 0, 0);
  struct timespec soon = from_now(CLOCK_REALTIME, 5), bad = {time(NULL) + 100, 1000000000};
  SAME(sem_timedwait(&s, &soon), -1);
  SAME(errno, ETIMEDOUT);
  SAME(sem_timedwait(&s, &bad), -1);
  SAME(errno, EINVAL);
  soon = from_now(CLOCK_MONOTONIC, 5);
  SAME(sem_clockwait(&s, CLOCK_MONOTONIC, &soon), -1);
  SAME(errno, ETIMEDOUT);
  sem_post(&s);
  SAME(sem_timedwait(&s, &soon), 0);
  sem_destroy(&s);
}
static void* wait_for_post(void* a) {
  while (sem_wait(a) != 0) {
  }
  return a;
}
/* The C library's can always be. */
CASE(sem_is_not_destroyed_while_awaited) {
  if (!on_strata()) return;
  sem_t s;
  sem_init(&s, 0, 0);
  pthread_t t = begin(wait_for_post, &s);
  /* Until it waits. Ours that is not awaited is the same after it as before. */
  while (sem_destroy(&s) == 0) sched_yield();
  SAME(errno, EBUSY);
  sem_post(&s);
  CHECK(end(t) == &s);
  SAME(sem_destroy(&s), 0);
}
struct pingpong {
  sem_t a, b;
  int n;
};
static void* pong(void* x) {
  struct pingpong* p = x;
  for (int i = 0; i < 300; ++i) {
    sem_wait(&p->a);
    ++p->n;
    sem_post(&p->b);
  }
  return NULL;
}
CASE(sem_ping_pong) {
  struct pingpong p;
  p.n = 0;
  sem_init(&p.a, 0, 0);
  sem_init(&p.b, 0, 0);
  pthread_t t = begin(pong, &p);
  for (int i = 0; i < 300; ++i) {
    SAME(p.n, i);
    sem_post(&p.a);
    sem_wait(&p.b);
  }
  end(t);
  SAME(p.n, 300);
}
static void* post_later(void* a) {
  usleep(3000);
  sem_post(a);
  return NULL;
}
CASE(sem_named) {
  char name[40];
  snprintf(name, sizeof name, "/strata_test_%ld", (long)getpid());
  sem_t* s = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
  if (s == SEM_FAILED) {
    /* There is no /dev/shm here, or none that may be written to. */
    CHECK(errno == ENOSYS || errno == ENOENT || errno == EACCES || errno == EROFS);
    skip("no named semaphores here");
    return;
  }
  pthread_t t = begin(post_later, s);
  SAME(sem_wait(s), 0);
  SAME(sem_trywait(s), -1);
  struct timespec soon = from_now(CLOCK_REALTIME, 3);
  SAME(sem_timedwait(s, &soon), -1);
  SAME(errno, ETIMEDOUT);
  end(t);
  sem_close(s);
  sem_unlink(name);
}
