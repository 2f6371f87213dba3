/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes with a protocol for priorities. */
#include "check.h"

static pthread_mutexattr_t with_protocol(int protocol) {
  pthread_mutexattr_t a;
  SAME(pthread_mutexattr_init(&a), 0);
  SAME(pthread_mutexattr_setprotocol(&a, protocol), 0);
  return a;
}
static void* trylock_there(void* m) { return (void*)(long)pthread_mutex_trylock(m); }

/* ---- inheritance ---- */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_there;
static void* wait_with(void* m) {
  SAME(pthread_mutex_lock(m), 0);
  while (!is_there) SAME(pthread_cond_wait(&changed, m), 0);
  SAME(pthread_mutex_unlock(m), 0);
  return NULL;
}
CASE(protocol_inherit_is_that_of_a_mutex_like_others) {
  const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
  const int answers[] = {EBUSY, 0, EDEADLK};
  for (int k = 0; k < 3; ++k) {
    int ceiling = 0;
    pthread_mutex_t m;
    pthread_mutexattr_t a = with_protocol(PTHREAD_PRIO_INHERIT);
    SAME(pthread_mutexattr_settype(&a, kinds[k]), 0);
    SAME(pthread_mutex_init(&m, &a), 0);
    is_there = 0;
    const pthread_t waits = begin(wait_with, &m);
    SAME(pthread_mutex_lock(&m), 0);
    SAME((long)end(begin(trylock_there, &m)), EBUSY);
    if (k == 0) {
      SAME(pthread_mutex_trylock(&m), answers[k]);
    } else {
      SAME(pthread_mutex_lock(&m), answers[k]);
    }
    if (answers[k] == 0) SAME(pthread_mutex_unlock(&m), 0);
    is_there = 1;
    SAME(pthread_cond_broadcast(&changed), 0);
    SAME(pthread_mutex_unlock(&m), 0);
    end(waits);
    SAME(pthread_mutex_getprioceiling(&m, &ceiling), EINVAL);
    SAME(pthread_mutex_setprioceiling(&m, 1, &ceiling), EINVAL);
    SAME(pthread_mutex_destroy(&m), 0);
  }
}
static void* lock_and_end(void* m) { return (void*)(long)pthread_mutex_lock(m); }
CASE(protocol_inherit_goes_with_robust) {
  pthread_mutex_t m;
  pthread_mutexattr_t a = with_protocol(PTHREAD_PRIO_INHERIT);
  SAME(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
  SAME(pthread_mutex_init(&m, &a), 0);
  SAME((long)end(begin(lock_and_end, &m)), 0);
  SAME(pthread_mutex_lock(&m), EOWNERDEAD);
  SAME(pthread_mutex_consistent(&m), 0);
  SAME(pthread_mutex_unlock(&m), 0);
  SAME(pthread_mutex_destroy(&m), 0);
}

/* ---- ceilings ---- */
static pthread_mutex_t below(int ceiling, int kind) {
  pthread_mutex_t m;
  pthread_mutexattr_t a = with_protocol(PTHREAD_PRIO_PROTECT);
  SAME(pthread_mutexattr_settype(&a, kind), 0);
  if (ceiling != 0) SAME(pthread_mutexattr_setprioceiling(&a, ceiling), 0);
  SAME(pthread_mutex_init(&m, &a), 0);
  return m;
}
static int ceiling_of(pthread_mutex_t* m) {
  int ceiling = -1;
  SAME(pthread_mutex_getprioceiling(m, &ceiling), 0);
  return ceiling;
}
CASE(protocol_protect_has_a_ceiling_that_can_be_changed) {
  const int least = sched_get_priority_min(SCHED_FIFO);
  const int most = sched_get_priority_max(SCHED_FIFO);
  int before = -1;
  pthread_mutex_t usual = below(0, PTHREAD_MUTEX_NORMAL);
  SAME(ceiling_of(&usual), least);
  SAME(pthread_mutex_destroy(&usual), 0);
  pthread_mutex_t m = below(7, PTHREAD_MUTEX_NORMAL);
  SAME(ceiling_of(&m), 7);
  SAME(pthread_mutex_setprioceiling(&m, most, &before), 0);
  SAME(before, 7);
  SAME(ceiling_of(&m), most);
  SAME(pthread_mutex_setprioceiling(&m, least - 1, &before), EINVAL);
  SAME(pthread_mutex_setprioceiling(&m, most + 1, &before), EINVAL);
  SAME(ceiling_of(&m), most);
  SAME(pthread_mutex_setprioceiling(&m, least, &before), 0);
  SAME(ceiling_of(&m), least);
  SAME(pthread_mutex_destroy(&m), 0);
}
CASE(protocol_protect_does_not_go_with_robust) {
  pthread_mutex_t m;
  pthread_mutexattr_t a = with_protocol(PTHREAD_PRIO_PROTECT);
  SAME(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
  SAME(pthread_mutex_init(&m, &a), ENOTSUP);
}
CASE(ceilings_are_those_of_mutexes_that_have_them) {
  int ceiling = 0;
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  SAME(pthread_mutex_getprioceiling(&m, &ceiling), EINVAL);
  SAME(pthread_mutex_setprioceiling(&m, 1, &ceiling), EINVAL);
}
/* The C library wants a thread of real-time priority, which few may have. */
CASE(protocol_protect_locks_like_others) {
  if (!on_strata()) {
    skip("the C library wants a real-time priority");
    return;
  }
  int before = 0;
  pthread_mutex_t m = below(2, PTHREAD_MUTEX_RECURSIVE);
  SAME(pthread_mutex_lock(&m), 0);
  SAME(pthread_mutex_trylock(&m), 0);
  SAME((long)end(begin(trylock_there, &m)), EBUSY);
  SAME(pthread_mutex_setprioceiling(&m, 3, &before), 0);
  SAME(before, 2);
  SAME(pthread_mutex_unlock(&m), 0);
  SAME((long)end(begin(trylock_there, &m)), EBUSY);
  SAME(pthread_mutex_unlock(&m), 0);
  SAME(pthread_mutex_unlock(&m), EPERM);
  is_there = 0;
  const pthread_t waits = begin(wait_with, &m);
  SAME(pthread_mutex_lock(&m), 0);
  is_there = 1;
  SAME(pthread_cond_broadcast(&changed), 0);
  SAME(pthread_mutex_unlock(&m), 0);
  end(waits);
  SAME(pthread_mutex_destroy(&m), 0);
  pthread_mutex_t checked = below(2, PTHREAD_MUTEX_ERRORCHECK);
  SAME(pthread_mutex_lock(&checked), 0);
  SAME(pthread_mutex_lock(&checked), EDEADLK);
  SAME(pthread_mutex_setprioceiling(&checked, 3, &before), EDEADLK);
  SAME(pthread_mutex_unlock(&checked), 0);
}
static void* lock_from_above(void* m) {
  int before = 0;
  const struct sched_param p = {5};
  const struct timespec soon = from_now(CLOCK_REALTIME, 1000);
  if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &p) != 0) {
    skip("no real-time priority is to be had");
    return NULL;
  }
  SAME(pthread_mutex_lock(m), EINVAL);
  SAME(pthread_mutex_trylock(m), EINVAL);
  SAME(pthread_mutex_timedlock(m, &soon), EINVAL);
  SAME(pthread_mutex_setprioceiling(m, 5, &before), 0);
  SAME(pthread_mutex_lock(m), 0);
  SAME(pthread_mutex_unlock(m), 0);
  return NULL;
}
CASE(who_is_above_a_ceiling_cannot_lock) {
  pthread_mutex_t m = below(4, PTHREAD_MUTEX_NORMAL);
  end(begin(lock_from_above, &m));
  SAME(pthread_mutex_destroy(&m), 0);
}
