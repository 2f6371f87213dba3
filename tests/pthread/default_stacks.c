/* SPDX-License-Identifier: Apache-2.0 */
/* How large stacks are that nobody has asked for: as `ulimit -s` says, or
 * pthread_setattr_default_np(). To be run with several limits. */
#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"

static size_t size_of(int (*get)(pthread_attr_t*)) {
  pthread_attr_t a;
  size_t bytes = 0;
  SAME(get(&a), 0);
  SAME(pthread_attr_getstacksize(&a, &bytes), 0);
  pthread_attr_destroy(&a);
  return bytes;
}
static size_t size_of_fresh_attributes(void) { return size_of(&pthread_attr_init); }
static size_t size_of_default(void) { return size_of(&pthread_getattr_default_np); }
static void set_default_size(size_t bytes) {
  pthread_attr_t a;
  SAME(pthread_attr_init(&a), 0);
  SAME(pthread_attr_setstacksize(&a, bytes), 0);
  SAME(pthread_setattr_default_np(&a), 0);
  pthread_attr_destroy(&a);
}

/* Writes to so many bytes of its stack, page by page. */
__attribute__((noinline)) static int use(size_t bytes) {
  volatile char page[4096];
  page[0] = (char)bytes;
  if (bytes <= sizeof page) return page[0];
  return use(bytes - sizeof page) + page[0];
}
static void* use_most(void* expected) {
  pthread_attr_t a;
  size_t bytes = 0;
  SAME(pthread_getattr_np(pthread_self(), &a), 0);
  SAME(pthread_attr_getstacksize(&a, &bytes), 0);
  pthread_attr_destroy(&a);
  /* The C library counts what it has put there itself. */
  CHECK(bytes >= *(size_t*)expected);
  CHECK(bytes <= *(size_t*)expected + 65536);
  use(*(size_t*)expected / 4 * 3);
  return NULL;
}

static void* nothing(void* a) { return a; }
static atomic_int has_looked, has_ended;
static void* look_all_the_time(void* a) {
  while (!has_ended) {
    int i;
    for (i = 0; i < 100; ++i) size_of_default();
    has_looked = 1;
    sched_yield(); /* one worker is enough */
  }
  return a;
}
CASE(the_child_of_a_fork_makes_threads) {
  const size_t before = size_of_default();
  pthread_t lookers[4];
  int i;
  set_default_size(before);
  has_looked = has_ended = 0;
  for (i = 0; i < 4; ++i) lookers[i] = begin(look_all_the_time, NULL);
  while (!has_looked) sched_yield();
  for (i = 0; i < 30; ++i) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
      pthread_t t;
      _exit(pthread_create(&t, NULL, nothing, NULL) == 0 && pthread_join(t, NULL) == 0 ? 0 : 1);
    }
    while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
    }
    SAME(status, 0);
    if (status != 0) break;
  }
  has_ended = 1;
  for (i = 0; i < 4; ++i) SAME(end(lookers[i]), 0);
}

CASE(threads_have_what_fresh_attributes_say) {
  size_t bytes = size_of_fresh_attributes();
  pthread_attr_t a;
  pthread_t t;
  SAME(size_of_default(), bytes);
  SAME(end(begin(use_most, &bytes)), 0);
  SAME(pthread_attr_init(&a), 0);
  SAME(pthread_create(&t, &a, use_most, &bytes), 0);
  SAME(end(t), 0);
}

CASE(main_has_what_the_limit_says) {
  struct rlimit limit;
  SAME(getrlimit(RLIMIT_STACK, &limit), 0);
  use(limit.rlim_cur == RLIM_INFINITY ? (size_t)6 << 20 : limit.rlim_cur / 4 * 3);
}

CASE(defaults_can_be_changed) {
  const size_t before = size_of_fresh_attributes();
  size_t larger = before + ((size_t)24 << 20);
  size_t smaller = (size_t)128 << 10;
  set_default_size(larger);
  SAME(size_of_fresh_attributes(), larger);
  SAME(size_of_default(), larger);
  SAME(end(begin(use_most, &larger)), 0);
  set_default_size(smaller);
  SAME(size_of_default(), smaller);
  SAME(end(begin(use_most, &smaller)), 0);
  set_default_size(before);
  SAME(size_of_default(), before);
}

static sem_t go_on;
static void* wait_to_go_on(void* a) {
  while (sem_wait(&go_on) != 0) {
  }
  return a;
}

CASE(threads_are_detached_by_default) {
  pthread_attr_t before, a;
  pthread_t t;
  int state = -1;
  sem_init(&go_on, 0, 0);
  SAME(pthread_getattr_default_np(&before), 0);
  SAME(pthread_attr_getdetachstate(&before, &state), 0);
  SAME(state, PTHREAD_CREATE_JOINABLE);
  SAME(pthread_attr_init(&a), 0);
  SAME(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED), 0);
  SAME(pthread_setattr_default_np(&a), 0);
  pthread_attr_destroy(&a);
  SAME(pthread_getattr_default_np(&a), 0);
  SAME(pthread_attr_getdetachstate(&a, &state), 0);
  SAME(state, PTHREAD_CREATE_DETACHED);
  t = begin(wait_to_go_on, NULL);
  SAME(pthread_join(t, NULL), EINVAL);
  sem_post(&go_on);
  SAME(pthread_setattr_default_np(&before), 0);
  SAME(end(begin(wait_to_go_on, (sem_post(&go_on), NULL))), 0);
}

static void* what_is_blocked(void* set) {
  SAME(pthread_sigmask(SIG_BLOCK, NULL, set), 0);
  return set;
}
CASE(threads_have_signals_blocked_by_default) {
  pthread_attr_t before, a, fresh;
  sigset_t one, seen;
  pthread_t t;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  SAME(pthread_getattr_default_np(&before), 0);
  SAME(pthread_attr_init(&a), 0);
  SAME(pthread_attr_setsigmask_np(&a, &one), 0);
  SAME(pthread_setattr_default_np(&a), 0);
  pthread_attr_destroy(&a);
  sigemptyset(&one);
  SAME(pthread_getattr_default_np(&a), 0);
  SAME(pthread_attr_getsigmask_np(&a, &one), 0);
  SAME(sigismember(&one, SIGUSR2), 1);
  SAME(sigismember(&one, SIGUSR1), 0);
  pthread_attr_destroy(&a);
  end(begin(what_is_blocked, &seen));
  SAME(sigismember(&seen, SIGUSR2), 1);
  /* Attributes of its own that say nothing of it: as its maker. */
  SAME(pthread_attr_init(&fresh), 0);
  SAME(pthread_create(&t, &fresh, what_is_blocked, &seen), 0);
  end(t);
  SAME(sigismember(&seen, SIGUSR2), 0);
  pthread_attr_destroy(&fresh);
  SAME(pthread_setattr_default_np(&before), 0);
  end(begin(what_is_blocked, &seen));
  SAME(sigismember(&seen, SIGUSR2), 0);
}

/* Attributes that were begun after that and ask for no size. */
CASE(attributes_without_a_size_have_the_defaults) {
  const size_t before = size_of_default();
  size_t bytes = 4 * before;
  pthread_attr_t a;
  pthread_t t;
  set_default_size(bytes);
  SAME(pthread_attr_init(&a), 0);
  SAME(pthread_create(&t, &a, use_most, &bytes), 0);
  SAME(pthread_join(t, NULL), 0);
  pthread_attr_destroy(&a);
  set_default_size(before);
}

CASE(a_default_has_no_place) {
  static char place[65536] __attribute__((aligned(4096)));
  const size_t before = size_of_default();
  pthread_attr_t a;
  SAME(pthread_attr_init(&a), 0);
  SAME(pthread_attr_setstack(&a, place, sizeof place), 0);
  SAME(pthread_setattr_default_np(&a), EINVAL);
  SAME(size_of_default(), before);
}
