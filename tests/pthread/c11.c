/* SPDX-License-Identifier: Apache-2.0 */
/* C11's threads, which are pthreads by other names. */
#include <threads.h>

#include "check.h"

static thrd_t begin_c11(thrd_start_t start, void* argument) {
  thrd_t t;
  SAME(thrd_create(&t, start, argument), thrd_success);
  return t;
}
static int end_c11(thrd_t t) {
  int result = -1;
  SAME(thrd_join(t, &result), thrd_success);
  return result;
}

/* ---- threads ---- */
static int cancel_himself(void* a) {
  pthread_cancel(pthread_self());
  thrd_sleep(a, NULL); /* a point of it */
  return 0;
}
CASE(c11_threads_are_pthreads) {
  struct timespec none = {0, 0};
  const thrd_t t = begin_c11(cancel_himself, &none);
  SAME((int)(t >> 63), on_strata());
  CHECK(end(t) == PTHREAD_CANCELED);
}
static int tell_himself(void* a) {
  *(thrd_t*)a = thrd_current();
  return 0;
}
static int give_number(void* a) { return *(int*)a; }
static int exit_with_number(void* a) { thrd_exit(*(int*)a); }
CASE(c11_threads_tell_their_results) {
  const int numbers[] = {0, 1, -1, 0x7FFFFFFF, -0x7FFFFFFF};
  thrd_t told;
  for (int i = 0; i < 5; ++i) {
    int number = numbers[i];
    SAME(end_c11(begin_c11(give_number, &number)), number);
    SAME(end_c11(begin_c11(exit_with_number, &number)), number);
  }
  const thrd_t t = begin_c11(tell_himself, &told);
  end_c11(t);
  CHECK(thrd_equal(t, told));
  CHECK(!thrd_equal(told, thrd_current()));
}
static atomic_int detached_has_run;
static int run_detached(void* a) {
  (void)a;
  atomic_store(&detached_has_run, 1);
  return 0;
}
CASE(c11_threads_are_detached_once) {
  const thrd_t t = begin_c11(run_detached, NULL);
  SAME(thrd_detach(t), thrd_success);
  while (!atomic_load(&detached_has_run)) thrd_yield();
}
CASE(c11_sleep_ends_and_refuses_what_is_no_time) {
  const struct timespec soon = {0, 1000000}, none = {0, 1000000000};
  struct timespec left = {5, 5};
  SAME(thrd_sleep(&soon, NULL), 0);
  CHECK(thrd_sleep(&none, &left) < -1);
}

/* ---- mutexes and condition variables ---- */
struct turns {
  mtx_t mutex;
  cnd_t changed;
  int next;
};
enum { turns_max = 50 };
static int take_turns(void* a) {
  struct turns* t = a;
  SAME(mtx_lock(&t->mutex), thrd_success);
  const int own = t->next++ % 2;
  cnd_broadcast(&t->changed);
  for (int i = 0; i < turns_max; ++i) {
    while (t->next % 2 != own) SAME(cnd_wait(&t->changed, &t->mutex), thrd_success);
    ++t->next;
    SAME(cnd_broadcast(&t->changed), thrd_success);
  }
  SAME(mtx_unlock(&t->mutex), thrd_success);
  return own;
}
CASE(c11_threads_take_turns) {
  struct turns t = {.next = 0};
  SAME(mtx_init(&t.mutex, mtx_plain), thrd_success);
  SAME(cnd_init(&t.changed), thrd_success);
  const thrd_t one = begin_c11(take_turns, &t), other = begin_c11(take_turns, &t);
  SAME(end_c11(one) + end_c11(other), 1);
  SAME(t.next, 2 * turns_max + 2);
  cnd_destroy(&t.changed);
  mtx_destroy(&t.mutex);
}
static int trylock_c11(void* m) {
  const int answer = mtx_trylock(m);
  if (answer == thrd_success) mtx_unlock(m);
  return answer;
}
CASE(c11_mutexes_of_each_type) {
  const int types[] = {mtx_plain, mtx_timed, mtx_plain | mtx_recursive, mtx_timed | mtx_recursive};
  for (int i = 0; i < 4; ++i) {
    const int deeper = (types[i] & mtx_recursive) != 0;
    const struct timespec past = from_now(CLOCK_REALTIME, -1);
    mtx_t m;
    SAME(mtx_init(&m, types[i]), thrd_success);
    SAME(mtx_lock(&m), thrd_success);
    SAME(mtx_trylock(&m), deeper ? thrd_success : thrd_busy);
    SAME(mtx_timedlock(&m, &past), deeper ? thrd_success : thrd_timedout);
    for (int n = 0; n < 2 * deeper; ++n) SAME(mtx_unlock(&m), thrd_success);
    SAME(end_c11(begin_c11(trylock_c11, &m)), thrd_busy);
    SAME(mtx_unlock(&m), thrd_success);
    SAME(end_c11(begin_c11(trylock_c11, &m)), thrd_success);
    mtx_destroy(&m);
  }
}
CASE(c11_condition_variables_wait_until_a_time) {
  const struct timespec past = from_now(CLOCK_REALTIME, -1);
  mtx_t m;
  cnd_t c;
  SAME(mtx_init(&m, mtx_plain), thrd_success);
  SAME(cnd_init(&c), thrd_success);
  SAME(cnd_signal(&c), thrd_success);
  SAME(mtx_lock(&m), thrd_success);
  SAME(cnd_timedwait(&c, &m, &past), thrd_timedout);
  SAME(mtx_trylock(&m), thrd_busy);
  SAME(mtx_unlock(&m), thrd_success);
  cnd_destroy(&c);
  mtx_destroy(&m);
}
/* More threads than workers. */
static mtx_t waited_for;
static atomic_int have_it;
static int hold_it_once(void* a) {
  SAME(mtx_lock(&waited_for), thrd_success);
  SAME(atomic_fetch_add(&have_it, 1), 0);
  for (int i = 0; i < 10; ++i) thrd_yield();
  SAME(atomic_fetch_sub(&have_it, 1), 1);
  SAME(mtx_unlock(&waited_for), thrd_success);
  (void)a;
  return 0;
}
CASE(c11_mutex_that_many_want) {
  thrd_t all[20];
  SAME(mtx_init(&waited_for, mtx_plain), thrd_success);
  for (int i = 0; i < 20; ++i) all[i] = begin_c11(hold_it_once, NULL);
  for (int i = 0; i < 20; ++i) end_c11(all[i]);
  mtx_destroy(&waited_for);
}

/* ---- once, and values ---- */
static once_flag flag = ONCE_FLAG_INIT;
static int calls;
static void count_call(void) {
  ++calls;
  for (int i = 0; i < 5; ++i) thrd_yield();
}
static int call_it(void* a) {
  (void)a;
  call_once(&flag, count_call);
  return calls;
}
CASE(c11_call_once) {
  thrd_t all[5];
  for (int i = 0; i < 5; ++i) all[i] = begin_c11(call_it, NULL);
  for (int i = 0; i < 5; ++i) SAME(end_c11(all[i]), 1);
}
static tss_t key;
static atomic_int destroyed;
static void count_destroyed(void* a) {
  (void)a;
  atomic_fetch_add(&destroyed, 1);
}
static int has_value(void* a) {
  CHECK(tss_get(key) == NULL);
  SAME(tss_set(key, a), thrd_success);
  thrd_yield();
  CHECK(tss_get(key) == a);
  return 0;
}
CASE(c11_values_are_each_thread_s_own) {
  int numbers[3];
  thrd_t all[3];
  SAME(tss_create(&key, count_destroyed), thrd_success);
  for (int i = 0; i < 3; ++i) all[i] = begin_c11(has_value, &numbers[i]);
  for (int i = 0; i < 3; ++i) end_c11(all[i]);
  SAME(destroyed, 3);
  tss_delete(key);
}
