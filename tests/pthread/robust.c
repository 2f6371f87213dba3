/* SPDX-License-Identifier: Apache-2.0 */
/* Robust mutexes: threads and processes that end with one. */
#include "check.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void make(pthread_mutex_t* m, int type, int shared) {
  pthread_mutexattr_t a;
  pthread_mutexattr_init(&a);
  SAME(pthread_mutexattr_settype(&a, type), 0);
  SAME(pthread_mutexattr_setpshared(&a, shared), 0);
  SAME(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
  SAME(pthread_mutex_init(m, &a), 0);
  pthread_mutexattr_destroy(&a);
}
static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
static const int sharings[] = {PTHREAD_PROCESS_PRIVATE, PTHREAD_PROCESS_SHARED};
#define EACH(array) (unsigned i_##array = 0; i_##array < sizeof array / sizeof *array; ++i_##array)
/* A statement for robust mutexes of all kinds, each fresh. */
#define FOR_ALL_KINDS(m, statement)                          \
  for EACH(types) for EACH(sharings) {                       \
    pthread_mutex_t m;                                       \
    make(&m, types[i_types], sharings[i_sharings]);          \
    statement;                                               \
    SAME(pthread_mutex_destroy(&m), 0);                      \
  }

static void* lock_and_return(void* a) {
  SAME(pthread_mutex_lock(a), 0);
  return a;
}
static void leave_locked(pthread_mutex_t* m) { CHECK(end(begin(lock_and_return, m)) == m); }
#define THERE(name, call)                                    \
  static void* name##_there(void* a) { return (void*)(long)call(a); } \
  static long name##_elsewhere(pthread_mutex_t* m) { return (long)end(begin(name##_there, m)); }
THERE(lock, pthread_mutex_lock)
THERE(trylock, pthread_mutex_trylock)
THERE(unlock, pthread_mutex_unlock)
static int lock_in_time(pthread_mutex_t* m) {
  const struct timespec later = from_now(CLOCK_REALTIME, 30000);
  return pthread_mutex_timedlock(m, &later);
}
static int lock_by_clock(pthread_mutex_t* m) {
  const struct timespec later = from_now(CLOCK_MONOTONIC, 30000);
  return pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &later);
}
static int (*const ways[])(pthread_mutex_t*) = {pthread_mutex_lock, pthread_mutex_trylock, lock_in_time, lock_by_clock};

CASE(robust_attributes) {
  pthread_mutexattr_t a;
  int robust = -1;
  SAME(pthread_mutexattr_init(&a), 0);
  SAME(pthread_mutexattr_getrobust(&a, &robust), 0);
  SAME(robust, PTHREAD_MUTEX_STALLED);
  SAME(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
  SAME(pthread_mutexattr_getrobust(&a, &robust), 0);
  SAME(robust, PTHREAD_MUTEX_ROBUST);
  SAME(pthread_mutexattr_setrobust(&a, 77), EINVAL);
  SAME(pthread_mutexattr_destroy(&a), 0);
}
/* The C library's header says that they are old. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
CASE(robust_by_its_old_names) {
  pthread_mutexattr_t a;
  pthread_mutex_t m;
  int robust = -1;
  pthread_mutexattr_init(&a);
  SAME(pthread_mutexattr_setrobust_np(&a, PTHREAD_MUTEX_ROBUST_NP), 0);
  SAME(pthread_mutexattr_getrobust_np(&a, &robust), 0);
  SAME(robust, PTHREAD_MUTEX_ROBUST);
  SAME(pthread_mutex_init(&m, &a), 0);
  leave_locked(&m);
  SAME(pthread_mutex_lock(&m), EOWNERDEAD);
  SAME(pthread_mutex_consistent_np(&m), 0);
  SAME(pthread_mutex_unlock(&m), 0);
  SAME(pthread_mutex_lock(&m), 0);
  SAME(pthread_mutex_unlock(&m), 0);
  pthread_mutexattr_destroy(&a);
}
#pragma GCC diagnostic pop
CASE(robust_excludes_and_tells_who_has_it) {
  FOR_ALL_KINDS(m, {
    SAME(pthread_mutex_unlock(&m), EPERM);
    SAME(pthread_mutex_lock(&m), 0);
    SAME(trylock_elsewhere(&m), EBUSY);
    SAME(unlock_elsewhere(&m), EPERM);
    SAME(pthread_mutex_consistent(&m), EINVAL);
    SAME(pthread_mutex_unlock(&m), 0);
    SAME(pthread_mutex_unlock(&m), EPERM);
    SAME(pthread_mutex_trylock(&m), 0);
    SAME(pthread_mutex_unlock(&m), 0);
  })
}
CASE(robust_is_left_to_whoever_locks_it_next) {
  for EACH(ways) FOR_ALL_KINDS(m, {
    leave_locked(&m);
    SAME(ways[i_ways](&m), EOWNERDEAD);
    SAME(trylock_elsewhere(&m), EBUSY);
    SAME(pthread_mutex_consistent(&m), 0);
    SAME(pthread_mutex_consistent(&m), EINVAL);
    SAME(pthread_mutex_unlock(&m), 0);
    SAME(ways[i_ways](&m), 0);
    SAME(pthread_mutex_unlock(&m), 0);
  })
}
CASE(robust_and_not_made_consistent_is_not_for_those_who_try) {
  FOR_ALL_KINDS(m, {
    leave_locked(&m);
    SAME(pthread_mutex_trylock(&m), EOWNERDEAD);
    SAME(pthread_mutex_unlock(&m), 0);
    SAME(pthread_mutex_trylock(&m), ENOTRECOVERABLE);
  })
}
CASE(robust_and_not_made_consistent_is_lost) {
  for EACH(ways) FOR_ALL_KINDS(m, {
    if (ways[i_ways] == pthread_mutex_trylock) continue; /* glibc 2.36 leaves one that is lost locked then */
    leave_locked(&m);
    SAME(ways[i_ways](&m), EOWNERDEAD);
    SAME(pthread_mutex_unlock(&m), 0);
    /* The C library's (2.36) stays locked by who has tried it then: that comes last. */
    const int rounds = ways[i_ways] == pthread_mutex_trylock && !on_strata() ? 0 : 2;
    for (int i = 0; i < rounds; ++i) {
      SAME(ways[i_ways](&m), ENOTRECOVERABLE);
      SAME(lock_elsewhere(&m), ENOTRECOVERABLE);
      SAME(pthread_mutex_unlock(&m), EPERM);
      SAME(pthread_mutex_consistent(&m), EINVAL);
    }
    SAME(pthread_mutex_trylock(&m), ENOTRECOVERABLE);
    SAME(pthread_mutex_destroy(&m), 0);
    make(&m, types[i_types], sharings[i_sharings]);
    SAME(ways[i_ways](&m), 0);
    SAME(pthread_mutex_unlock(&m), 0);
  })
}
static void* inherit_and_return(void* a) {
  SAME(pthread_mutex_lock(a), EOWNERDEAD);
  return a;
}
CASE(robust_is_inherited_from_heir_to_heir) {
  FOR_ALL_KINDS(m, {
    leave_locked(&m);
    for (int i = 0; i < 3; ++i) end(begin(inherit_and_return, &m));
    SAME(pthread_mutex_lock(&m), EOWNERDEAD);
    SAME(pthread_mutex_consistent(&m), 0);
    SAME(pthread_mutex_unlock(&m), 0);
    leave_locked(&m);
    SAME(pthread_mutex_lock(&m), EOWNERDEAD);
    SAME(pthread_mutex_unlock(&m), 0);
  })
}
CASE(robust_recursive_and_errorcheck) {
  for EACH(sharings) {
    pthread_mutex_t r, e;
    make(&r, PTHREAD_MUTEX_RECURSIVE, sharings[i_sharings]);
    make(&e, PTHREAD_MUTEX_ERRORCHECK, sharings[i_sharings]);
    leave_locked(&r);
    SAME(pthread_mutex_lock(&r), EOWNERDEAD);
    SAME(pthread_mutex_lock(&r), 0);
    SAME(pthread_mutex_trylock(&r), 0);
    SAME(lock_in_time(&r), 0);
    SAME(pthread_mutex_consistent(&r), 0);
    SAME(pthread_mutex_unlock(&r), 0);
    SAME(pthread_mutex_unlock(&r), 0);
    SAME(pthread_mutex_unlock(&r), 0);
    SAME(trylock_elsewhere(&r), EBUSY);
    SAME(pthread_mutex_unlock(&r), 0);
    SAME(trylock_elsewhere(&r), 0); /* and left again */
    SAME(pthread_mutex_trylock(&r), EOWNERDEAD);
    SAME(pthread_mutex_unlock(&r), 0);
    SAME(pthread_mutex_lock(&e), 0);
    SAME(pthread_mutex_lock(&e), EDEADLK);
    SAME(lock_in_time(&e), EDEADLK);
    /* The C library's has EDEADLK there for robust ones alone. */
    if (on_strata()) SAME(pthread_mutex_trylock(&e), EBUSY);
    SAME(pthread_mutex_unlock(&e), 0);
    SAME(pthread_mutex_destroy(&r), 0);
    SAME(pthread_mutex_destroy(&e), 0);
  }
}
static void* lock_thrice(void* a) {
  for (int i = 0; i < 3; ++i) SAME(pthread_mutex_lock(a), 0);
  return a;
}
CASE(robust_recursive_left_deep_is_locked_once) {
  for EACH(sharings) {
    pthread_mutex_t m;
    make(&m, PTHREAD_MUTEX_RECURSIVE, sharings[i_sharings]);
    end(begin(lock_thrice, &m));
    SAME(pthread_mutex_lock(&m), EOWNERDEAD);
    SAME(pthread_mutex_consistent(&m), 0);
    SAME(pthread_mutex_unlock(&m), 0);
    SAME(pthread_mutex_unlock(&m), EPERM);
    SAME(pthread_mutex_destroy(&m), 0);
  }
}
CASE(robust_time_passes_where_it_is_held) {
  FOR_ALL_KINDS(m, {
    pthread_mutex_lock(&m);
    if (types[i_types] == PTHREAD_MUTEX_NORMAL) {
      struct timespec soon = from_now(CLOCK_REALTIME, 5);
      SAME(pthread_mutex_timedlock(&m, &soon), ETIMEDOUT);
      soon.tv_nsec = -1;
      SAME(pthread_mutex_timedlock(&m, &soon), EINVAL);
      SAME(pthread_mutex_clocklock(&m, 12345, &soon), EINVAL);
    }
    pthread_mutex_unlock(&m);
  })
}
CASE(robust_is_not_destroyed_while_held) {
  if (!on_strata()) return; /* The C library destroys it. */
  FOR_ALL_KINDS(m, {
    pthread_mutex_lock(&m);
    SAME(pthread_mutex_destroy(&m), EBUSY);
    pthread_mutex_unlock(&m);
  })
}
CASE(robust_consistent_is_for_robust_ones) {
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&m);
  SAME(pthread_mutex_consistent(&m), EINVAL);
  pthread_mutex_unlock(&m);
}

/* ---- ways to end ---- */
static void* lock_and_exit(void* a) {
  SAME(pthread_mutex_lock(a), 0);
  pthread_exit(a);
}
static atomic_int locked_there;
static void* lock_and_sleep(void* a) {
  SAME(pthread_mutex_lock(a), 0);
  atomic_store(&locked_there, 1);
  for (;;) sleep(1000);
  return NULL;
}
static void unlock_it(void* a) { SAME(pthread_mutex_unlock(a), 0); }
static void* lock_with_a_handler(void* a) {
  SAME(pthread_mutex_lock(a), 0);
  pthread_cleanup_push(unlock_it, a);
  pthread_exit(a);
  pthread_cleanup_pop(0);
}
static pthread_key_t unlocks_at_end;
static void* lock_with_a_value(void* a) {
  SAME(pthread_mutex_lock(a), 0);
  pthread_setspecific(unlocks_at_end, a);
  return a;
}
CASE(robust_owner_exits_or_is_cancelled) {
  FOR_ALL_KINDS(m, {
    end(begin(lock_and_exit, &m));
    SAME(pthread_mutex_lock(&m), EOWNERDEAD);
    SAME(pthread_mutex_consistent(&m), 0);
    SAME(pthread_mutex_unlock(&m), 0);
    atomic_store(&locked_there, 0);
    pthread_t t = begin(lock_and_sleep, &m);
    await(&locked_there, 1);
    SAME(pthread_cancel(t), 0);
    SAME(pthread_mutex_lock(&m), EOWNERDEAD);
    CHECK(end(t) == PTHREAD_CANCELED);
    SAME(pthread_mutex_consistent(&m), 0);
    SAME(pthread_mutex_unlock(&m), 0);
  })
}
CASE(robust_owner_still_has_it_in_handlers_and_destructors) {
  pthread_key_create(&unlocks_at_end, unlock_it);
  FOR_ALL_KINDS(m, {
    end(begin(lock_with_a_handler, &m));
    SAME(pthread_mutex_lock(&m), 0);
    SAME(pthread_mutex_unlock(&m), 0);
    end(begin(lock_with_a_value, &m));
    SAME(pthread_mutex_lock(&m), 0);
    SAME(pthread_mutex_unlock(&m), 0);
  })
  pthread_key_delete(unlocks_at_end);
}
enum { several = 10 };
static void* lock_several(void* a) {
  pthread_mutex_t* m = a;
  for (int i = 0; i < several; ++i) SAME(pthread_mutex_lock(&m[i]), 0);
  for (int i = 0; i < several; i += 3) SAME(pthread_mutex_unlock(&m[i]), 0);
  return a;
}
CASE(robust_several_are_left) {
  for EACH(sharings) {
    pthread_mutex_t m[several];
    for (int i = 0; i < several; ++i) make(&m[i], PTHREAD_MUTEX_NORMAL, sharings[i_sharings]);
    end(begin(lock_several, m));
    for (int i = 0; i < several; ++i) {
      SAME(pthread_mutex_lock(&m[i]), i % 3 == 0 ? 0 : EOWNERDEAD);
      SAME(pthread_mutex_unlock(&m[i]), 0);
      SAME(pthread_mutex_destroy(&m[i]), 0);
    }
  }
}

/* ---- others wait already ---- */
enum { waiters_max = 6 };
struct awaited {
  pthread_mutex_t m;
  atomic_int held, begun, ends, told, got, lost;
  bool repairs;
};
static void* hold_until_told(void* a) {
  struct awaited* w = a;
  SAME(pthread_mutex_lock(&w->m), 0);
  atomic_store(&w->held, 1);
  await(&w->ends, 1);
  return NULL;
}
static void* wait_for_it(void* a) {
  struct awaited* w = a;
  const int answer = atomic_fetch_add(&w->begun, 1) % 2 == 0 ? pthread_mutex_lock(&w->m) : lock_in_time(&w->m);
  if (answer == ENOTRECOVERABLE) {
    atomic_fetch_add(&w->lost, 1);
    return NULL;
  }
  atomic_fetch_add(answer == EOWNERDEAD ? &w->told : &w->got, 1);
  CHECK(answer == 0 || answer == EOWNERDEAD);
  if (answer == EOWNERDEAD && w->repairs) SAME(pthread_mutex_consistent(&w->m), 0);
  SAME(pthread_mutex_unlock(&w->m), 0);
  return NULL;
}
static void leave_to_waiters(struct awaited* w, int waiters, bool repairs, int type, int shared) {
  memset(w, 0, sizeof *w);
  w->repairs = repairs;
  make(&w->m, type, shared);
  pthread_t t[waiters_max], owner = begin(hold_until_told, w);
  await(&w->held, 1);
  for (int i = 0; i < waiters; ++i) t[i] = begin(wait_for_it, w);
  await(&w->begun, waiters);
  usleep(2000);
  atomic_store(&w->ends, 1);
  end(owner);
  for (int i = 0; i < waiters; ++i) end(t[i]);
}
CASE(robust_one_of_the_waiters_is_told) {
  for EACH(types) for EACH(sharings) {
    struct awaited w;
    leave_to_waiters(&w, waiters_max, true, types[i_types], sharings[i_sharings]);
    SAME(w.told, 1);
    SAME(w.got, waiters_max - 1);
    SAME(pthread_mutex_trylock(&w.m), 0);
    SAME(pthread_mutex_unlock(&w.m), 0);
    SAME(pthread_mutex_destroy(&w.m), 0);
  }
}
CASE(robust_all_waiters_learn_that_it_is_lost) {
  /* Of the C library's waiters the first who learns it does not wake the next (glibc 2.36). */
  const int waiters = on_strata() ? waiters_max : 2;
  for EACH(types) for EACH(sharings) {
    struct awaited w;
    leave_to_waiters(&w, waiters, false, types[i_types], sharings[i_sharings]);
    SAME(w.told, 1);
    SAME(w.got, 0);
    SAME(w.lost, waiters - 1);
    SAME(pthread_mutex_destroy(&w.m), 0);
  }
}

/* ---- condition variables ---- */
struct meeting {
  pthread_mutex_t m;
  pthread_cond_t c;
  bool waits, goes_on, leaves_it;
};
static void* wake_and_go(void* a) {
  struct meeting* x = a;
  int answer = pthread_mutex_lock(&x->m);
  while (answer == 0 && !x->waits) {
    pthread_mutex_unlock(&x->m);
    sched_yield();
    answer = pthread_mutex_lock(&x->m);
  }
  SAME(answer, 0);
  x->goes_on = true;
  SAME(pthread_cond_signal(&x->c), 0);
  if (!x->leaves_it) SAME(pthread_mutex_unlock(&x->m), 0);
  return NULL;
}
static void* wake_and_lose(void* a) {
  struct meeting* x = a;
  SAME(pthread_mutex_lock(&x->m), EOWNERDEAD);
  x->goes_on = true;
  SAME(pthread_cond_signal(&x->c), 0);
  SAME(pthread_mutex_unlock(&x->m), 0);
  return NULL;
}
static void meet(struct meeting* x, int type, int shared) {
  pthread_condattr_t a;
  pthread_condattr_init(&a);
  pthread_condattr_setpshared(&a, shared);
  memset(x, 0, sizeof *x);
  make(&x->m, type, shared);
  pthread_cond_init(&x->c, &a);
  pthread_condattr_destroy(&a);
}
CASE(robust_wait_ends_with_what_its_waker_left) {
  for EACH(types) for EACH(sharings) for (int in_time = 0; in_time < 2; ++in_time) {
    struct meeting x;
    const struct timespec later = from_now(CLOCK_REALTIME, 30000);
    meet(&x, types[i_types], sharings[i_sharings]);
    x.leaves_it = true;
    SAME(pthread_mutex_lock(&x.m), 0);
    pthread_t t = begin(wake_and_go, &x);
    x.waits = true;
    int answer = 0;
    while (answer == 0 && !x.goes_on)
      answer = in_time ? pthread_cond_timedwait(&x.c, &x.m, &later) : pthread_cond_wait(&x.c, &x.m);
    SAME(answer, EOWNERDEAD);
    end(t);
    SAME(x.goes_on, true);
    SAME(trylock_elsewhere(&x.m), EBUSY);
    SAME(pthread_mutex_consistent(&x.m), 0);
    SAME(pthread_mutex_unlock(&x.m), 0);
    SAME(pthread_mutex_unlock(&x.m), EPERM);
    SAME(pthread_cond_destroy(&x.c), 0);
    SAME(pthread_mutex_destroy(&x.m), 0);
  }
}
CASE(robust_wait_goes_on_as_ever) {
  for EACH(types) for EACH(sharings) {
    struct meeting x;
    struct timespec soon = from_now(CLOCK_REALTIME, 3);
    meet(&x, types[i_types], sharings[i_sharings]);
    SAME(pthread_cond_timedwait(&x.c, &x.m, &soon), EPERM);
    SAME(pthread_mutex_lock(&x.m), 0);
    SAME(pthread_cond_timedwait(&x.c, &x.m, &soon), ETIMEDOUT);
    pthread_t t = begin(wake_and_go, &x);
    x.waits = true;
    while (!x.goes_on) SAME(pthread_cond_wait(&x.c, &x.m), 0);
    end(t);
    SAME(pthread_mutex_unlock(&x.m), 0);
    SAME(pthread_mutex_unlock(&x.m), EPERM);
    SAME(pthread_cond_destroy(&x.c), 0);
    SAME(pthread_mutex_destroy(&x.m), 0);
  }
}
/* Not in time, and the mutex was left meanwhile: that is the answer. */
static void* lock_when_it_waits(void* a) {
  struct meeting* x = a;
  SAME(pthread_mutex_lock(&x->m), 0);
  SAME(x->waits, true);
  return NULL;
}
CASE(robust_wait_that_times_out_tells_of_the_mutex) {
  for EACH(types) for EACH(sharings) {
    struct meeting x;
    meet(&x, types[i_types], sharings[i_sharings]);
    SAME(pthread_mutex_lock(&x.m), 0);
    pthread_t t = begin(lock_when_it_waits, &x);
    x.waits = true;
    int answer;
    do {
      const struct timespec soon = from_now(CLOCK_REALTIME, 3);
      answer = pthread_cond_timedwait(&x.c, &x.m, &soon);
    } while (answer == ETIMEDOUT);
    SAME(answer, EOWNERDEAD);
    end(t);
    SAME(pthread_mutex_unlock(&x.m), 0);
    SAME(pthread_cond_destroy(&x.c), 0);
    SAME(pthread_mutex_destroy(&x.m), 0);
  }
}
static void* wait_until_lost(void* a) {
  struct meeting* x = a;
  SAME(pthread_mutex_lock(&x->m), 0);
  x->waits = true;
  int answer = 0;
  while (answer == 0) answer = pthread_cond_wait(&x->c, &x->m);
  SAME(answer, ENOTRECOVERABLE);
  SAME(pthread_mutex_unlock(&x->m), EPERM);
  return NULL;
}
static void* leave_it_when_somebody_waits(void* a) {
  struct meeting* x = a;
  SAME(pthread_mutex_lock(&x->m), 0);
  while (!x->waits) {
    pthread_mutex_unlock(&x->m);
    sched_yield();
    pthread_mutex_lock(&x->m);
  }
  return NULL;
}
CASE(robust_wait_ends_where_it_is_lost) {
  for EACH(types) for EACH(sharings) {
    struct meeting x;
    meet(&x, types[i_types], sharings[i_sharings]);
    pthread_t t = begin(wait_until_lost, &x);
    end(begin(leave_it_when_somebody_waits, &x));
    end(begin(wake_and_lose, &x));
    end(t);
    SAME(pthread_cond_destroy(&x.c), 0);
    SAME(pthread_mutex_destroy(&x.m), 0);
  }
}
static void* wait_with_a_handler(void* a) {
  struct meeting* x = a;
  SAME(pthread_mutex_lock(&x->m), 0);
  pthread_cleanup_push(unlock_it, &x->m);
  x->waits = true;
  for (;;) pthread_cond_wait(&x->c, &x->m);
  pthread_cleanup_pop(0);
}
CASE(robust_wait_that_is_cancelled_has_the_mutex) {
  for EACH(sharings) for (int handled = 0; handled < 2; ++handled) {
    struct meeting x;
    meet(&x, PTHREAD_MUTEX_ERRORCHECK, sharings[i_sharings]);
    pthread_t t = begin(handled ? wait_with_a_handler : wait_until_lost, &x);
    SAME(pthread_mutex_lock(&x.m), 0);
    while (!x.waits) {
      pthread_mutex_unlock(&x.m);
      sched_yield();
      pthread_mutex_lock(&x.m);
    }
    SAME(pthread_mutex_unlock(&x.m), 0);
    SAME(pthread_cancel(t), 0);
    CHECK(end(t) == PTHREAD_CANCELED);
    SAME(pthread_mutex_lock(&x.m), handled ? 0 : EOWNERDEAD);
    SAME(pthread_mutex_unlock(&x.m), 0);
    SAME(pthread_mutex_destroy(&x.m), 0);
  }
}

/* ---- processes ---- */
struct common {
  pthread_mutex_t m;
  atomic_int held, ends;
};
static struct common* share(void) {
  struct common* c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(c != MAP_FAILED);
  make(&c->m, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_SHARED);
  return c;
}
static void end_of(pid_t child, int wanted) {
  int status = 0;
  SAME(waitpid(child, &status, 0), child);
  SAME(status, wanted);
}
static void repair(struct common* c) {
  SAME(pthread_mutex_lock(&c->m), EOWNERDEAD);
  SAME(pthread_mutex_consistent(&c->m), 0);
  SAME(pthread_mutex_unlock(&c->m), 0);
  SAME(pthread_mutex_lock(&c->m), 0);
  SAME(pthread_mutex_unlock(&c->m), 0);
}
static pid_t start_holder(struct common* c) {
  atomic_store(&c->held, 0);
  atomic_store(&c->ends, 0);
  const pid_t child = fork();
  if (child == 0) {
    if (pthread_mutex_lock(&c->m) != 0) _exit(1);
    atomic_store(&c->held, 1);
    await(&c->ends, 1);
    _exit(0);
  }
  await(&c->held, 1);
  SAME(pthread_mutex_trylock(&c->m), EBUSY);
  return child;
}
CASE(robust_is_left_by_a_process) {
  struct common* c = share();
  const struct timespec soon = from_now(CLOCK_REALTIME, 3);
  pid_t child = start_holder(c);
  SAME(pthread_mutex_timedlock(&c->m, &soon), ETIMEDOUT);
  atomic_store(&c->ends, 1);
  end_of(child, 0);
  repair(c);
  /* Not asked for its status yet. */
  child = start_holder(c);
  SAME(kill(child, SIGKILL), 0);
  repair(c);
  end_of(child, SIGKILL);
  /* Whoever tries, too, and one that is left so is lost. */
  child = start_holder(c);
  SAME(kill(child, SIGKILL), 0);
  end_of(child, SIGKILL);
  SAME(pthread_mutex_trylock(&c->m), EOWNERDEAD);
  SAME(pthread_mutex_unlock(&c->m), 0);
  SAME(pthread_mutex_trylock(&c->m), ENOTRECOVERABLE);
  SAME(pthread_mutex_destroy(&c->m), 0);
  munmap(c, sizeof *c);
}
static void* repair_there(void* a) {
  repair(a);
  return NULL;
}
CASE(robust_is_left_by_a_process_to_one_that_waits) {
  struct common* c = share();
  const pid_t child = start_holder(c);
  pthread_t t = begin(repair_there, c);
  usleep(2000);
  SAME(kill(child, SIGKILL), 0);
  end(t);
  end_of(child, SIGKILL);
  munmap(c, sizeof *c);
}
CASE(robust_is_not_that_of_a_forked_child) {
  struct common* c = share();
  SAME(pthread_mutex_lock(&c->m), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool has_it = pthread_mutex_unlock(&c->m) != EPERM || pthread_mutex_trylock(&c->m) != EBUSY;
    _exit(has_it);
  }
  end_of(child, 0);
  SAME(trylock_elsewhere(&c->m), EBUSY);
  SAME(pthread_mutex_unlock(&c->m), 0);
  SAME(pthread_mutex_lock(&c->m), 0);
  SAME(pthread_mutex_unlock(&c->m), 0);
  munmap(c, sizeof *c);
}
static void* inherit_and_end_the_process(void* a) {
  struct common* c = a;
  atomic_store(&c->held, 1);
  _exit(pthread_mutex_lock(&c->m) == EOWNERDEAD ? 42 : 1);
}
static void leave_it_to_an_heir(struct common* c, int type, int shared) {
  alarm(child_limit_s);
  memset(c, 0, sizeof *c);
  make(&c->m, type, shared);
  SAME(pthread_mutex_lock(&c->m), 0);
  begin(inherit_and_end_the_process, c);
  await(&c->held, 1);
  pthread_exit(NULL);
}
CASE(robust_is_left_by_the_first_thread) {
  for EACH(types) for EACH(sharings) {
    const pid_t child = fork();
    if (child == 0) {
      struct common c; /* what main() has in its frames stays there: the heir uses it */
      leave_it_to_an_heir(&c, types[i_types], sharings[i_sharings]);
    }
    end_of(child, 42 << 8);
  }
}
struct forking {
  int type, shared;
  pid_t child;
};
static void* fork_and_leave_it_there(void* a) {
  static struct common c; /* the C library gives the frames of other threads back */
  struct forking* f = a;
  const pid_t child = fork();
  if (child == 0) leave_it_to_an_heir(&c, f->type, f->shared);
  f->child = child;
  return NULL;
}
CASE(robust_is_left_by_the_thread_that_forked) {
  for EACH(types) for EACH(sharings) {
    struct forking f = {types[i_types], sharings[i_sharings], -1};
    end(begin(fork_and_leave_it_there, &f));
    end_of(f.child, 42 << 8);
  }
}
