/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: life, keys, once, cancellation, sleeping. */
#include <limits.h>
#include <stdint.h>

#include "check.h"

static void* give_back(void* a) { return a; }
static void* sleep_a_little(void* a) {
  usleep(2000);
  return a;
}

static void* wait_on(void* semaphore) {
  sem_wait(semaphore);
  return NULL;
}

CASE(join_gives_the_result) {
  int here;
  CHECK(end(begin(give_back, &here)) == &here);
}
CASE(join_many) {
  enum { n = 300 };
  static pthread_t t[n];
  for (long i = 0; i < n; ++i) t[i] = begin(i % 2 ? give_back : sleep_a_little, (void*)i);
  for (long i = 0; i < n; ++i) SAME((long)end(t[i]), i);
}
CASE(join_without_result) { SAME(pthread_join(begin(give_back, NULL), NULL), 0); }
static void* exit_with(void* a) { pthread_exit(a); }
CASE(exit_gives_the_result) {
  int here;
  CHECK(end(begin(exit_with, &here)) == &here);
}
static void* join_itself(void* a) {
  (void)a;
  return (void*)(long)pthread_join(pthread_self(), NULL);
}
CASE(join_oneself) { SAME((long)end(begin(join_itself, NULL)), EDEADLK); }
static pthread_t joined_by_the_other;
static atomic_int both_are_there, circle_was_seen;
static void* join_until_it_can(void* a) {
  (void)a;
  int error = 0;
  await(&both_are_there, 1);
  /* While the other one tries, it is in its way. */
  while ((error = pthread_join(joined_by_the_other, NULL)) == EDEADLK) sched_yield();
  return (void*)(long)error;
}
static void* join_the_joiner(void* a) {
  struct timespec past = from_now(CLOCK_REALTIME, -1);
  int error = 0;
  await(&both_are_there, 1);
  while ((error = pthread_timedjoin_np(*(pthread_t*)a, NULL, &past)) == ETIMEDOUT) sched_yield();
  SAME(error, EDEADLK);
  atomic_store(&circle_was_seen, 1);
  return NULL;
}
/* The C library's (2.36) wait for ever, although it means to look. */
CASE(join_each_other) {
  if (!on_strata()) return;
  atomic_store(&both_are_there, 0);
  atomic_store(&circle_was_seen, 0);
  pthread_t first = begin(join_until_it_can, NULL);
  joined_by_the_other = begin(join_the_joiner, &first);
  atomic_store(&both_are_there, 1);
  await(&circle_was_seen, 1);
  SAME((long)end(first), 0);
}
static void* join_for_ever(void* first) {
  atomic_store(&both_are_there, 1);
  pthread_join(*(pthread_t*)first, NULL);
  CHECK(!"reached");
  return NULL;
}
CASE(join_of_a_cancelled_thread_that_joins_us) {
  pthread_t own = pthread_self();
  atomic_store(&both_are_there, 0);
  pthread_t t = begin(join_for_ever, &own);
  await(&both_are_there, 1);
  usleep(3000); /* it is to join, else it is cancelled before */
  SAME(pthread_cancel(t), 0);
  CHECK(end(t) == PTHREAD_CANCELED);
}
static pthread_t leaver, stayer;
static atomic_int is_leaving;
static atomic_int who_saw_it; /* 1: the leaver, 2: the stayer, 3: both */
static void note_circle(int error, int who) {
  CHECK(error == 0 || error == EDEADLK);
  if (error == EDEADLK) atomic_fetch_add(&who_saw_it, who);
}
static void join_the_stayer(void* a) {
  (void)a;
  atomic_store(&is_leaving, 1);
  note_circle(pthread_join(stayer, NULL), 1);
}
static void* join_while_leaving(void* a) {
  await(&both_are_there, 1);
  pthread_cleanup_push(join_the_stayer, NULL);
  pthread_cancel(pthread_self());
  pthread_testcancel();
  pthread_cleanup_pop(0);
  return a;
}
static void* join_the_leaver(void* a) {
  await(&is_leaving, 1);
  usleep(3000); /* it is to join by now, else it is the one that sees it */
  note_circle(pthread_join(leaver, NULL), 2);
  return a;
}
/* Its cancellation does not end that. The C library's wait for ever. */
CASE(join_of_a_cancelled_thread_that_joins_us_while_it_leaves) {
  if (!on_strata()) return;
  atomic_store(&both_are_there, 0);
  atomic_store(&is_leaving, 0);
  atomic_store(&who_saw_it, 0);
  leaver = begin(join_while_leaving, NULL);
  stayer = begin(join_the_leaver, NULL);
  atomic_store(&both_are_there, 1);
  while (atomic_load(&who_saw_it) == 0) sched_yield();
  SAME(pthread_join(who_saw_it == 1 ? stayer : leaver, NULL), 0);
}
CASE(join_detached) {
  pthread_attr_t a;
  pthread_t t;
  pthread_attr_init(&a);
  pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
  static sem_t stop; /* the thread may outlive the case */
  sem_init(&stop, 0, 0);
  SAME(pthread_create(&t, &a, wait_on, &stop), 0);
  SAME(pthread_join(t, NULL), EINVAL);
  SAME(pthread_detach(t), EINVAL);
  sem_post(&stop);
  pthread_attr_destroy(&a);
}
CASE(tryjoin) {
  sem_t stop;
  void* result = NULL;
  sem_init(&stop, 0, 0);
  pthread_t t = begin(wait_on, &stop);
  SAME(pthread_tryjoin_np(t, &result), EBUSY);
  struct timespec soon = from_now(CLOCK_REALTIME, 5);
  SAME(pthread_timedjoin_np(t, &result, &soon), ETIMEDOUT);
  sem_post(&stop);
  soon = from_now(CLOCK_REALTIME, 20000);
  SAME(pthread_timedjoin_np(t, &result, &soon), 0);
}
static void* join_without_waiting(void* other) {
  void* result = NULL;
  SAME(pthread_cancel(pthread_self()), 0);
  int error;
  while ((error = pthread_tryjoin_np(*(pthread_t*)other, &result)) == EBUSY) sched_yield();
  SAME(error, 0);
  CHECK(result == other);
  pthread_testcancel();
  return NULL;
}
CASE(tryjoin_is_no_point_of_cancellation) {
  pthread_t other;
  SAME(pthread_create(&other, NULL, give_back, &other), 0);
  CHECK(end(begin(join_without_waiting, &other)) == PTHREAD_CANCELED);
}
CASE(clockjoin) {
  const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
  for (int i = 0; i < 2; ++i) {
    sem_t stop;
    void* result = &stop;
    sem_init(&stop, 0, 0);
    pthread_t t = begin(wait_on, &stop);
    struct timespec until = from_now(clocks[i], -1);
    SAME(pthread_clockjoin_np(t, &result, clocks[i], &until), ETIMEDOUT);
    until = from_now(clocks[i], 5);
    SAME(pthread_clockjoin_np(t, &result, clocks[i], &until), ETIMEDOUT);
    SAME(pthread_clockjoin_np(t, &result, CLOCK_PROCESS_CPUTIME_ID, &until), EINVAL);
    sem_post(&stop);
    until = from_now(clocks[i], 20000);
    SAME(pthread_clockjoin_np(t, &result, clocks[i], &until), 0);
    CHECK(result == NULL);
  }
}
static void* own_id(void* a) {
  *(pthread_t*)a = pthread_self();
  return NULL;
}
CASE(self_and_equal) {
  pthread_t seen, t = begin(own_id, &seen);
  end(t);
  CHECK(pthread_equal(seen, t));
  CHECK(!pthread_equal(seen, pthread_self()));
  CHECK(pthread_equal(pthread_self(), pthread_self()));
}
CASE(detach_then_it_ends) {
  for (int i = 0; i < 50; ++i) SAME(pthread_detach(begin(give_back, NULL)), 0);
}
static void* attributes_of_itself(void* a) {
  pthread_attr_t* out = a;
  SAME(pthread_getattr_np(pthread_self(), out), 0);
  int here;
  void* base;
  size_t bytes;
  pthread_attr_getstack(out, &base, &bytes);
  CHECK((char*)&here >= (char*)base && (char*)&here < (char*)base + bytes);
  SAME((uintptr_t)base % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
  return (void*)bytes;
}
CASE(stack_size) {
  pthread_attr_t a, seen;
  pthread_t t;
  pthread_attr_init(&a);
  SAME(pthread_attr_setstacksize(&a, 1), EINVAL);
  SAME(pthread_attr_setstacksize(&a, 3 << 20), 0);
  SAME(pthread_create(&t, &a, attributes_of_itself, &seen), 0);
  CHECK((size_t)end(t) >= (3u << 20) - 4096);
  pthread_attr_destroy(&seen);
  pthread_attr_destroy(&a);
}
static atomic_int shows_its_frame;
static void* _Atomic frame_of_another;
static void* show_frame(void* stop) {
  int here;
  frame_of_another = &here;
  atomic_store(&shows_its_frame, 1);
  await(stop, 1);
  return NULL;
}
CASE(stack_of_another) {
  for (int asks = 0; asks < 2; ++asks) {
    atomic_int stop = 0;
    pthread_attr_t a, seen;
    pthread_t t;
    void* base = NULL;
    size_t bytes = 0;
    pthread_attr_init(&a);
    if (asks) SAME(pthread_attr_setstacksize(&a, 3 << 20), 0);
    atomic_store(&shows_its_frame, 0);
    SAME(pthread_create(&t, &a, show_frame, &stop), 0);
    await(&shows_its_frame, 1);
    SAME(pthread_getattr_np(t, &seen), 0);
    SAME(pthread_attr_getstack(&seen, &base, &bytes), 0);
    CHECK((char*)frame_of_another >= (char*)base && (char*)frame_of_another < (char*)base + bytes);
    if (asks) CHECK(bytes >= (3u << 20) - 4096);
    atomic_store(&stop, 1);
    end(t);
    pthread_attr_destroy(&seen);
    pthread_attr_destroy(&a);
  }
}
static void* big_frame(void* a) {
  volatile char some[1 << 20];
  memset((char*)some, 1, sizeof some);
  return a != NULL && some[5] == 1 ? a : NULL;
}
CASE(a_megabyte_of_stack_by_default) {
  int here;
  CHECK(end(begin(big_frame, &here)) == &here);
}
CASE(names) {
  sem_t stop;
  char name[16];
  sem_init(&stop, 0, 0);
  pthread_t t = begin(wait_on, &stop);
  SAME(pthread_setname_np(t, "fifteen letters"), 0);
  SAME(pthread_setname_np(t, "sixteen letters!"), ERANGE);
  SAME(pthread_getname_np(t, name, sizeof name), 0);
  SAME(strcmp(name, "fifteen letters"), 0);
  SAME(pthread_getname_np(t, name, 4), ERANGE);
  SAME(pthread_setname_np(t, ""), 0);
  SAME(pthread_getname_np(t, name, sizeof name), 0);
  SAME(strcmp(name, ""), 0);
  sem_post(&stop);
  end(t);
}
static void name_of_process(char* name) {
  const int fd = open("/proc/self/comm", O_RDONLY);
  const ssize_t got = read(fd, name, 16);
  CHECK(got > 0);
  name[got > 0 ? got - 1 : 0] = '\0';
  close(fd);
}
CASE(the_first_thread_names_its_process) {
  char before[16], name[16];
  SAME(pthread_getname_np(pthread_self(), before, sizeof before), 0);
  for (int named = 0; named < 2; ++named) {
    SAME(pthread_setname_np(pthread_self(), named ? "other" : ""), 0);
    SAME(pthread_getname_np(pthread_self(), name, sizeof name), 0);
    SAME(strcmp(name, named ? "other" : ""), 0);
    name_of_process(name);
    SAME(strcmp(name, named ? "other" : ""), 0);
  }
  SAME(pthread_setname_np(pthread_self(), before), 0);
}
CASE(scheduling_parameters) {
  struct sched_param p = {-1};
  int policy = -1;
  SAME(pthread_getschedparam(pthread_self(), &policy, &p), 0);
  SAME(policy, SCHED_OTHER);
  SAME(p.sched_priority, 0);
  SAME(pthread_setschedparam(pthread_self(), SCHED_OTHER, &p), 0);
  p.sched_priority = 5;
  SAME(pthread_setschedparam(pthread_self(), SCHED_OTHER, &p), EINVAL);
  p.sched_priority = 0;
  SAME(pthread_setschedparam(pthread_self(), 12345, &p), EINVAL);
}
CASE(scheduling_priority) {
  sem_t stop;
  sem_init(&stop, 0, 0);
  pthread_t t = begin(wait_on, &stop), both[] = {pthread_self(), t};
  for (int i = 0; i < 2; ++i) {
    struct sched_param p = {-1};
    int policy = -1;
    SAME(pthread_setschedprio(both[i], 0), 0);
    SAME(pthread_setschedprio(both[i], 5), EINVAL);
    SAME(pthread_getschedparam(both[i], &policy, &p), 0);
    SAME(policy, SCHED_OTHER);
    SAME(p.sched_priority, 0);
  }
  sem_post(&stop);
  end(t);
}
CASE(concurrency) {
  SAME(pthread_getconcurrency(), 0);
  SAME(pthread_setconcurrency(-1), EINVAL);
  SAME(pthread_setconcurrency(7), 0);
  SAME(pthread_getconcurrency(), 7);
  SAME(pthread_setconcurrency(0), 0);
}
CASE(affinity_is_answered) {
  cpu_set_t set;
  SAME(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
  CHECK(CPU_COUNT(&set) > 0);
  SAME(pthread_setaffinity_np(pthread_self(), sizeof set, &set), 0);
}

/* ---- keys ---- */
static pthread_key_t key;
static atomic_int destroyed;
static void count_it(void* v) {
  CHECK(v != NULL);
  CHECK(pthread_getspecific(key) == NULL);
  atomic_fetch_add(&destroyed, 1);
}
static void* set_key(void* a) {
  CHECK(pthread_getspecific(key) == NULL);
  SAME(pthread_setspecific(key, a), 0);
  for (int i = 0; i < 10; ++i) {
    sched_yield();
    CHECK(pthread_getspecific(key) == a);
  }
  return NULL;
}
CASE(values_belong_to_threads) {
  pthread_t t[20];
  atomic_store(&destroyed, 0);
  SAME(pthread_key_create(&key, count_it), 0);
  CHECK(pthread_getspecific(key) == NULL);
  SAME(pthread_setspecific(key, &key), 0);
  for (long i = 0; i < 20; ++i) t[i] = begin(set_key, i % 4 ? (void*)(i + 1) : NULL);
  for (long i = 0; i < 20; ++i) end(t[i]);
  SAME(destroyed, 15);
  CHECK(pthread_getspecific(key) == &key);
  SAME(pthread_key_delete(key), 0);
  SAME(destroyed, 15);
}
static pthread_key_t stubborn_key;
static void set_again(void* v) {
  atomic_fetch_add(&destroyed, 1);
  pthread_setspecific(stubborn_key, v);
}
static void* set_stubborn(void* a) {
  pthread_setspecific(stubborn_key, a);
  return NULL;
}
CASE(destructors_run_a_few_times) {
  atomic_store(&destroyed, 0);
  SAME(pthread_key_create(&stubborn_key, set_again), 0);
  end(begin(set_stubborn, &destroyed));
  SAME(destroyed, PTHREAD_DESTRUCTOR_ITERATIONS);
  /* The next thread starts anew. */
  atomic_store(&destroyed, 0);
  end(begin(give_back, NULL));
  SAME(destroyed, 0);
  pthread_key_delete(stubborn_key);
}
CASE(keys_out_of_range) {
  SAME(pthread_key_delete(PTHREAD_KEYS_MAX + 5), EINVAL);
  SAME(pthread_setspecific(PTHREAD_KEYS_MAX + 5, NULL), EINVAL);
  pthread_key_t k;
  SAME(pthread_key_create(&k, NULL), 0);
  SAME(pthread_key_delete(k), 0);
  SAME(pthread_key_delete(k), EINVAL);
  SAME(pthread_setspecific(k, &k), EINVAL);
}
CASE(keys_run_out) {
  static pthread_key_t k[PTHREAD_KEYS_MAX + 1];
  int n = 0, error = 0;
  while (n <= PTHREAD_KEYS_MAX && (error = pthread_key_create(&k[n], NULL)) == 0) ++n;
  SAME(error, EAGAIN);
  CHECK(n >= 128);
  while (n > 0) SAME(pthread_key_delete(k[--n]), 0);
}
CASE(a_key_used_again_has_no_value) {
  pthread_key_t k;
  pthread_key_create(&k, NULL);
  pthread_setspecific(k, &k);
  pthread_key_delete(k);
  pthread_key_create(&k, NULL);
  CHECK(pthread_getspecific(k) == NULL);
  pthread_key_delete(k);
}

/* ---- once ---- */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int initialised;
static void initialise(void) {
  usleep(3000);
  atomic_fetch_add(&initialised, 1);
}
static void* call_once_(void* a) {
  SAME(pthread_once(&once, initialise), 0);
  SAME(initialised, 1);
  return a;
}
CASE(once_is_once) {
  pthread_t t[20];
  for (int i = 0; i < 20; ++i) t[i] = begin(call_once_, NULL);
  for (int i = 0; i < 20; ++i) end(t[i]);
}
static pthread_once_t interrupted_once = PTHREAD_ONCE_INIT;
static atomic_int in_once;
static void never_done(void) {
  atomic_store(&in_once, 1);
  sleep(1000);
}
static void done(void) { atomic_store(&in_once, 2); }
static void* call_never_done(void* a) {
  pthread_once(&interrupted_once, never_done);
  return a;
}
CASE(once_cancelled_is_as_if_never_called) {
  pthread_t t = begin(call_never_done, NULL);
  await(&in_once, 1);
  pthread_cancel(t);
  CHECK(end(t) == PTHREAD_CANCELED);
  SAME(pthread_once(&interrupted_once, done), 0);
  SAME(in_once, 2);
}

/* ---- cleanup and cancellation ---- */
static char order[16];
static void note(void* a) { strcat(order, a); }
static void* exit_with_handlers(void* a) {
  pthread_cleanup_push(note, "a");
  pthread_cleanup_push(note, "b");
  pthread_cleanup_push(note, "c");
  pthread_cleanup_pop(1);
  pthread_cleanup_push(note, "d");
  pthread_cleanup_pop(0);
  pthread_exit(a);
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  return NULL;
}
CASE(handlers_run_newest_first) {
  order[0] = 0;
  CHECK(end(begin(exit_with_handlers, order)) == order);
  SAME(strcmp(order, "cba"), 0);
}
static __attribute__((noinline)) void exit_deep(int n, void* a) {
  volatile char frame[100];
  frame[0] = (char)n;
  pthread_cleanup_push(note, n % 2 ? "x" : "y");
  if (n == 0) pthread_exit(a);
  if (n > 0) exit_deep(n - 1, a);
  pthread_cleanup_pop(0);
  frame[1] = frame[0];
}
static void* exit_from_depth(void* a) {
  exit_deep(3, a);
  return NULL;
}
CASE(handlers_of_callers_run_too) {
  order[0] = 0;
  CHECK(end(begin(exit_from_depth, order)) == order);
  SAME(strcmp(order, "yxyx"), 0);
}
static atomic_int started;
static void* wait_to_be_cancelled(void* a) {
  pthread_cleanup_push(note, "k");
  atomic_store(&started, 1);
  sleep(1000);
  pthread_cleanup_pop(0);
  return a;
}
CASE(cancel_a_sleeper) {
  order[0] = 0;
  atomic_store(&started, 0);
  pthread_t t = begin(wait_to_be_cancelled, NULL);
  await(&started, 1);
  usleep(2000);
  SAME(pthread_cancel(t), 0);
  CHECK(end(t) == PTHREAD_CANCELED);
  SAME(strcmp(order, "k"), 0);
}
static void* spin_until_cancelled(void* a) {
  atomic_store(&started, 1);
  for (;;) {
    pthread_testcancel();
    sched_yield();
  }
  return a;
}
CASE(cancel_at_testcancel) {
  atomic_store(&started, 0);
  pthread_t t = begin(spin_until_cancelled, NULL);
  await(&started, 1);
  pthread_cancel(t);
  CHECK(end(t) == PTHREAD_CANCELED);
}
static atomic_int may_go;
static void* refuse_to_be_cancelled(void* a) {
  int before = -1;
  SAME(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before), 0);
  SAME(before, PTHREAD_CANCEL_ENABLE);
  atomic_store(&started, 1);
  await(&may_go, 1);
  pthread_testcancel();
  usleep(100);
  strcat(order, "s");
  SAME(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before), 0);
  SAME(before, PTHREAD_CANCEL_DISABLE);
  pthread_testcancel();
  strcat(order, "not");
  return a;
}
CASE(cancel_is_held_back) {
  order[0] = 0;
  atomic_store(&started, 0);
  atomic_store(&may_go, 0);
  pthread_t t = begin(refuse_to_be_cancelled, NULL);
  await(&started, 1);
  SAME(pthread_cancel(t), 0);
  atomic_store(&may_go, 1);
  CHECK(end(t) == PTHREAD_CANCELED);
  SAME(strcmp(order, "s"), 0);
}
CASE(cancel_state_and_type_are_checked) {
  int before;
  SAME(pthread_setcancelstate(99, &before), EINVAL);
  SAME(pthread_setcanceltype(99, &before), EINVAL);
  SAME(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before), 0);
  SAME(before, PTHREAD_CANCEL_DEFERRED);
}
static void* exit_while_deferred(void* a) {
  int before = -1;
  SAME(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
  pthread_cleanup_push_defer_np(note, "1");
  SAME(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before), 0);
  SAME(before, PTHREAD_CANCEL_DEFERRED);
  pthread_cleanup_pop_restore_np(1);
  SAME(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before), 0);
  SAME(before, PTHREAD_CANCEL_ASYNCHRONOUS);
  pthread_cleanup_push_defer_np(note, "2");
  pthread_exit(a);
  pthread_cleanup_pop_restore_np(0);
}
CASE(handlers_that_defer_cancellation) {
  order[0] = 0;
  end(begin(exit_while_deferred, NULL));
  SAME(strcmp(order, "12"), 0);
}
static void* cancel_itself(void* a) {
  SAME(pthread_cancel(pthread_self()), 0);
  strcat(order, "1");
  pthread_testcancel();
  strcat(order, "2");
  return a;
}
CASE(cancel_oneself) {
  order[0] = 0;
  CHECK(end(begin(cancel_itself, NULL)) == PTHREAD_CANCELED);
  SAME(strcmp(order, "1"), 0);
}
static void* join_another(void* a) {
  atomic_store(&started, 1);
  pthread_join(*(pthread_t*)a, NULL);
  return NULL;
}
CASE(cancelled_join_leaves_the_thread_joinable) {
  sem_t stop;
  sem_init(&stop, 0, 0);
  atomic_store(&started, 0);
  pthread_t waited = begin(wait_on, &stop);
  pthread_t t = begin(join_another, &waited);
  await(&started, 1);
  usleep(2000);
  pthread_cancel(t);
  CHECK(end(t) == PTHREAD_CANCELED);
  sem_post(&stop);
  end(waited);
}
static void* cancelled_before(void* a) {
  await(&may_go, 1);
  sem_wait(a);
  return NULL;
}
CASE(cancel_comes_before_the_wait) {
  sem_t never;
  sem_init(&never, 0, 0);
  atomic_store(&may_go, 0);
  pthread_t t = begin(cancelled_before, &never);
  pthread_cancel(t);
  atomic_store(&may_go, 1);
  CHECK(end(t) == PTHREAD_CANCELED);
}
static void* destructor_after_cancel(void* a) {
  pthread_setspecific(key, a);
  atomic_store(&may_go, 1);
  sleep(1000);
  return a;
}
CASE(cancelled_threads_destroy_their_values) {
  atomic_store(&destroyed, 0);
  atomic_store(&may_go, 0);
  pthread_key_create(&key, count_it);
  pthread_t t = begin(destructor_after_cancel, &t);
  await(&may_go, 1);
  pthread_cancel(t);
  CHECK(end(t) == PTHREAD_CANCELED);
  SAME(atomic_load(&destroyed), 1);
  pthread_key_delete(key);
}

/* ---- errno and sleeping ---- */
/* Where errno is now, asked anew. */
__attribute__((noinline)) static int* where_errno_is(void) {
  __asm__ volatile("");
  return &errno;
}
#define ERRNO_STAYS(name, error)                                     \
  static void* name(void* a) {                                       \
    pthread_mutex_t* m = a;                                          \
    const int mine = (int)((uintptr_t)pthread_self() % 1000) + 1000; \
    for (int i = 0; i < 50; ++i) {                                   \
      (error) = mine;                                                \
      pthread_mutex_lock(m);                                         \
      sched_yield();                                                 \
      pthread_mutex_unlock(m);                                       \
      sched_yield();                                                 \
      SAME((error), mine);                                           \
      sem_t s;                                                       \
      sem_init(&s, 0, 0);                                            \
      struct timespec past = {1, 0};                                 \
      SAME(sem_timedwait(&s, &past), -1);                            \
      SAME((error), ETIMEDOUT);                                      \
    }                                                                \
    return NULL;                                                     \
  }
ERRNO_STAYS(errno_asked_anew, *where_errno_is())
/* A compiler may ask once for errno's address and keep it over all calls. */
ERRNO_STAYS(errno_as_compiled, errno)
static void use_errno(void* (*how)(void*)) {
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  pthread_t t[20];
  for (int i = 0; i < 20; ++i) t[i] = begin(how, &m);
  for (int i = 0; i < 20; ++i) end(t[i]);
}
CASE(errno_belongs_to_threads) { use_errno(errno_asked_anew); }
CASE(errno_with_its_address_kept) { use_errno(errno_as_compiled); }
static void* sleep_ms(void* a) {
  struct timespec before, after, time = {0, 5000000}, bad = {0, 1000000000};
  clock_gettime(CLOCK_MONOTONIC, &before);
  SAME(nanosleep(&time, NULL), 0);
  clock_gettime(CLOCK_MONOTONIC, &after);
  CHECK((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec >= 5000000);
  SAME(nanosleep(&bad, NULL), -1);
  SAME(errno, EINVAL);
  SAME(clock_nanosleep(CLOCK_MONOTONIC, 0, &bad, NULL), EINVAL);
  time = from_now(CLOCK_MONOTONIC, 3);
  SAME(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL), 0);
  clock_gettime(CLOCK_MONOTONIC, &after);
  CHECK(after.tv_sec > time.tv_sec ||
        (after.tv_sec == time.tv_sec && after.tv_nsec >= time.tv_nsec));
  SAME(usleep(10), 0);
  SAME(sleep(0), 0);
  return a;
}
CASE(sleeping) {
  sleep_ms(NULL);
  end(begin(sleep_ms, NULL));
}

/* ---- signals ---- */
static void* wait_for_signal(void* a) {
  sigset_t s;
  int got = 0;
  sigemptyset(&s);
  sigaddset(&s, SIGUSR1);
  SAME(pthread_sigmask(SIG_BLOCK, &s, NULL), 0);
  atomic_store(&started, 1);
  SAME(sigwait(&s, &got), 0);
  (void)a;
  return (void*)(long)got;
}
CASE(kill_a_thread_in_sigwait) {
  sigset_t s, before;
  sigemptyset(&s);
  sigaddset(&s, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &s, &before);
  atomic_store(&started, 0);
  pthread_t t = begin(wait_for_signal, NULL);
  await(&started, 1);
  SAME(pthread_kill(t, 0), 0);
  SAME(pthread_kill(t, SIGUSR1), 0);
  SAME((long)end(t), SIGUSR1);
  SAME(pthread_kill(pthread_self(), 12345), EINVAL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}
static volatile sig_atomic_t handled;
static void on_signal(int n) { handled = n; }
CASE(kill_oneself_runs_the_handler) {
  handled = 0;
  signal(SIGUSR2, on_signal);
  SAME(pthread_kill(pthread_self(), SIGUSR2), 0);
  SAME(handled, SIGUSR2);
  handled = 0;
  SAME(raise(SIGUSR2), 0);
  SAME(handled, SIGUSR2);
  signal(SIGUSR2, SIG_DFL);
}
