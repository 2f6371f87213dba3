/* SPDX-License-Identifier: Apache-2.0 */
/* Read-write locks of several processes in which writers come first. */
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

struct shared {
  pthread_rwlock_t lock;
  atomic_int written;
};
static struct shared* map_shared(void) {
  struct shared* s =
      mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_rwlockattr_t a;
  pthread_rwlockattr_init(&a);
  SAME(pthread_rwlockattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
  SAME(pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP), 0);
  SAME(pthread_rwlock_init(&s->lock, &a), 0);
  pthread_rwlockattr_destroy(&a);
  return s;
}
static void unmap_shared(struct shared* s) {
  SAME(pthread_rwlock_destroy(&s->lock), 0);
  munmap(s, sizeof *s);
}
static void* write_once(void* a) {
  struct shared* s = a;
  SAME(pthread_rwlock_wrlock(&s->lock), 0);
  atomic_store(&s->written, 1);
  SAME(pthread_rwlock_unlock(&s->lock), 0);
  return a;
}
/* Always one of two readers has it, unless they are held back. */
enum { patience_s = 60 };
static void read_until_it_is_written(struct shared* s) {
  const struct timespec limit = from_now(CLOCK_MONOTONIC, patience_s * 1000L);
  struct timespec now = {0, 0};
  int held = 1;
  while (!atomic_load(&s->written) && now.tv_sec < limit.tv_sec) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (pthread_rwlock_tryrdlock(&s->lock) == 0) ++held;
    if (held != 0) --held, pthread_rwlock_unlock(&s->lock);
    if (held == 0) held = pthread_rwlock_tryrdlock(&s->lock) == 0;
    sched_yield();
  }
  if (held != 0) pthread_rwlock_unlock(&s->lock);
  SAME(s->written, 1);
}
CASE(readers_that_processes_share_a_lock_with_let_a_writer_in) {
  struct shared* s = map_shared();
  SAME(pthread_rwlock_rdlock(&s->lock), 0);
  pthread_t t = begin(write_once, s);
  read_until_it_is_written(s);
  end(t);
  atomic_store(&s->written, 0);
  SAME(pthread_rwlock_rdlock(&s->lock), 0);
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    write_once(s);
    _exit(failures != 0);
  }
  read_until_it_is_written(s);
  reap(child);
  unmap_shared(s);
}
/* Of the C library's it does for ever. */
CASE(a_writer_whose_process_has_ended_holds_no_readers_back) {
  if (!on_strata()) return skip("readers would wait for ever");
  struct shared* s = map_shared();
  SAME(pthread_rwlock_rdlock(&s->lock), 0);
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    write_once(s);
    _exit(1);
  }
  /* It waits, and says so. */
  while (pthread_rwlock_tryrdlock(&s->lock) == 0) {
    SAME(pthread_rwlock_unlock(&s->lock), 0);
    sched_yield();
  }
  SAME(kill(child, SIGKILL), 0);
  int status = 0;
  SAME(waitpid(child, &status, 0), child);
  CHECK(WIFSIGNALED(status));
  /* As the writer has left it: its mark, and when it has looked, in 32 bits of milliseconds. */
  atomic_uint* const words = (atomic_uint*)&s->lock;
  const unsigned marked = atomic_load(&words[0]);
  const unsigned looked_ms = atomic_load(&words[1]);
  SAME(pthread_rwlock_rdlock(&s->lock), 0);
  SAME(pthread_rwlock_unlock(&s->lock), 0);
  /* However long that is ago. */
  for (unsigned days = 20; days < 49; days += 7) {
    atomic_store(&words[0], marked);
    atomic_store(&words[1], looked_ms - days * 86400000);
    SAME(pthread_rwlock_tryrdlock(&s->lock), 0);
    SAME(pthread_rwlock_unlock(&s->lock), 0);
  }
  SAME(pthread_rwlock_unlock(&s->lock), 0);
  SAME(pthread_rwlock_wrlock(&s->lock), 0);
  SAME(pthread_rwlock_unlock(&s->lock), 0);
  unmap_shared(s);
}
/* One that gives up does not either, and at once. */
static void* give_up_soon(void* a) {
  struct shared* s = a;
  const struct timespec soon = from_now(CLOCK_REALTIME, 200);
  SAME(pthread_rwlock_timedwrlock(&s->lock, &soon), ETIMEDOUT);
  atomic_store(&s->written, 1);
  return a;
}
/* A slow machine gives it no time for a first look. */
static int is_reader_held_back_before_it_ends(struct shared* s) {
  while (!atomic_load(&s->written)) {
    if (pthread_rwlock_tryrdlock(&s->lock) == EBUSY) return 1;
    SAME(pthread_rwlock_unlock(&s->lock), 0);
    sched_yield();
  }
  return 0;
}
CASE(a_writer_that_has_given_up_holds_no_readers_back) {
  struct shared* s = map_shared();
  SAME(pthread_rwlock_rdlock(&s->lock), 0);
  pthread_t t;
  do {
    atomic_store(&s->written, 0);
    t = begin(give_up_soon, s);
  } while (!is_reader_held_back_before_it_ends(s) && end(t) == s);
  end(t);
  SAME(pthread_rwlock_tryrdlock(&s->lock), 0);
  SAME(pthread_rwlock_unlock(&s->lock), 0);
  SAME(pthread_rwlock_unlock(&s->lock), 0);
  unmap_shared(s);
}
