/* SPDX-License-Identifier: Apache-2.0 */
/* As many threads as there can be. To be run with little address space (ulimit -v). */
#include "check.h"

enum { most = 100000 };
static pthread_t threads[most];
static sem_t stop;
static atomic_int begun;

static void* wait_for_stop(void* a) {
  atomic_fetch_add(&begun, 1);
  while (sem_wait(&stop) != 0) {
  }
  return a;
}
/* Until one is refused; returns how many were not. All of them begin. */
static int make_all(const pthread_attr_t* attributes) {
  int n = 0, error = 0;
  atomic_store(&begun, 0);
  while (n < most && error == 0) {
    error = pthread_create(&threads[n], attributes, wait_for_stop, &threads[n]);
    if (error == 0) ++n;
  }
  SAME(error, EAGAIN);
  await(&begun, n);
  return n;
}
static void end_all(int n) {
  for (int i = 0; i < n; ++i) SAME(sem_post(&stop), 0);
  for (int i = 0; i < n; ++i) CHECK(end(threads[i]) == &threads[i]);
}
static void use_up(const pthread_attr_t* attributes) {
  sem_init(&stop, 0, 0);
  const int first = make_all(attributes);
  CHECK(first >= 30);
  SAME(pthread_create(&threads[first], attributes, wait_for_stop, NULL), EAGAIN);
  end_all(first);
  /* Those that ended have left their places. */
  const int second = make_all(attributes);
  CHECK(second >= first - first / 8);
  end_all(second);
}
CASE(one_too_many_is_refused) { use_up(NULL); }
CASE(one_too_many_of_a_size_is_refused) {
  pthread_attr_t a;
  pthread_attr_init(&a);
  SAME(pthread_attr_setstacksize(&a, 1 << 20), 0);
  use_up(&a);
  pthread_attr_destroy(&a);
}
/* Who tries until there is room, and does nothing else, keeps nobody from making some. */
enum { creators = 4, one_after_the_other = 2000 };
static atomic_int made;
static void* nothing(void* a) { return a; }
static void* make_detached(void* attributes) {
  while (atomic_load(&made) < one_after_the_other) {
    pthread_t t;
    if (pthread_create(&t, attributes, nothing, NULL) == 0) atomic_fetch_add(&made, 1);
  }
  return NULL;
}
CASE(the_end_of_others_makes_room_for_who_tries_again_and_again) {
  pthread_attr_t a;
  pthread_attr_init(&a);
  SAME(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED), 0);
  SAME(pthread_attr_setstacksize(&a, 16 << 20), 0);
  for (int i = 0; i < creators; ++i) threads[i] = begin(make_detached, &a);
  for (int i = 0; i < creators; ++i) end(threads[i]);
  pthread_attr_destroy(&a);
}
