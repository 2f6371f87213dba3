/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel threads that the program has whichever way it is built: their ends, and that of the
 * process when main() has left them. */
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "c_librarys.h"
#include "check.h"

static void* give_back(void* a) { return a; }
static pthread_t begin_natively(void* (*start)(void*), void* argument) {
  pthread_t t;
  SAME(C_LIBRARYS(pthread_create)(&t, NULL, start, argument), 0);
  return t;
}
static void end_natively(pthread_t t) { SAME(C_LIBRARYS(pthread_join)(t, NULL), 0); }
static void leave_natively(void* (*start)(void*), void* argument) {
  SAME(C_LIBRARYS(pthread_detach)(begin_natively(start, argument)), 0);
}
static void run_natively(void* (*start)(void*), void* argument) {
  end_natively(begin_natively(start, argument));
}

/* ---- cleanup handlers ---- */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char ran[8];
static void note(void* what) { strcat(ran, what); }
static void unlock(void* a) {
  note("u");
  SAME(pthread_mutex_unlock(a), 0);
}
static void leave(void) {
  pthread_cleanup_push(note, "i");
  pthread_exit(NULL);
  pthread_cleanup_pop(0);
}
static void* exit_with_handlers(void* a) {
  int type = 0;
  pthread_mutex_lock(a);
  pthread_cleanup_push(unlock, a);
  pthread_cleanup_push(note, "x");
  pthread_cleanup_pop(0);
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  pthread_cleanup_push_defer_np(note, "d");
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  SAME(type, PTHREAD_CANCEL_DEFERRED);
  pthread_cleanup_pop_restore_np(1);
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  SAME(type, PTHREAD_CANCEL_ASYNCHRONOUS);
  leave();
  pthread_cleanup_pop(0);
  return NULL;
}
CASE(exit_of_a_kernel_thread_runs_its_handlers) {
  ran[0] = '\0';
  run_natively(exit_with_handlers, &lock);
  CHECK(strcmp(ran, "diu") == 0);
  SAME(pthread_mutex_trylock(&lock), 0);
  pthread_mutex_unlock(&lock);
}

static pthread_t waits;
static atomic_int waits_now;
static void* wait_for_ever(void* a) {
  static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(a);
  waits = pthread_self();
  pthread_cleanup_push(unlock, a);
  atomic_store(&waits_now, 1);
  for (;;) pthread_cond_wait(&never, a);
  pthread_cleanup_pop(0);
  return NULL;
}
CASE(cancel_of_a_kernel_thread_runs_its_handlers) {
  ran[0] = '\0';
  atomic_store(&waits_now, 0);
  const pthread_t t = begin_natively(wait_for_ever, &lock);
  await(&waits_now, 1);
  pthread_mutex_lock(&lock); /* it waits by now */
  SAME(pthread_cancel(waits), 0);
  pthread_mutex_unlock(&lock);
  end_natively(t);
  CHECK(strcmp(ran, "u") == 0);
  SAME(pthread_mutex_trylock(&lock), 0);
  pthread_mutex_unlock(&lock);
}

/* ---- values of keys ---- */
static pthread_key_t first_key; /* the C library's */
static pthread_key_t second_key;
static pthread_t ends;
static atomic_int destroyed;
static void count(void* a) {
  (void)a;
  atomic_fetch_add(&destroyed, 1);
}
static void set_another(void* a) { SAME(pthread_setspecific(second_key, a), 0); }
static void* end_unknown(void* a) {
  SAME(C_LIBRARYS(pthread_setspecific)(first_key, a), 0);
  return a;
}
static void* end_known(void* a) {
  CHECK(pthread_self() != 0);
  return end_unknown(a);
}
CASE(what_a_kernel_thread_sets_while_it_ends_is_destroyed) {
  enum { times = 20 };
  atomic_store(&destroyed, 0);
  SAME(C_LIBRARYS(pthread_key_create)(&first_key, set_another), 0);
  SAME(pthread_key_create(&second_key, count), 0);
  for (int i = 0; i < times; ++i) {
    run_natively(end_known, &destroyed);
    run_natively(end_unknown, &destroyed);
  }
  SAME(destroyed, 2 * times);
  SAME(pthread_key_delete(second_key), 0);
  SAME(C_LIBRARYS(pthread_key_delete)(first_key), 0);
}
static pthread_mutex_t robust;
static void unlock_as_the_same(void* a) {
  CHECK(pthread_equal(ends, pthread_self()));
  (void)a;
  SAME(pthread_mutex_unlock(&robust), 0);
}
static void* end_with_a_lock(void* a) {
  ends = pthread_self();
  SAME(pthread_mutex_lock(&robust), 0);
  return end_unknown(a);
}
CASE(a_kernel_thread_is_the_same_until_its_values_are_destroyed) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  SAME(pthread_mutex_init(&robust, &attributes), 0);
  SAME(C_LIBRARYS(pthread_key_create)(&first_key, unlock_as_the_same), 0);
  run_natively(end_with_a_lock, &robust);
  SAME(pthread_mutex_lock(&robust), 0);
  SAME(pthread_mutex_unlock(&robust), 0);
  SAME(C_LIBRARYS(pthread_key_delete)(first_key), 0);
}

/* ---- the end of the process ---- */
enum { end_of_the_last = 42 };
/* These only give a process that waits for nobody time to end: nothing else depends on them. */
static const struct timespec a_little = {0, 20000000};
static void* end_as_the_last(void* a) {
  (void)a;
  C_LIBRARYS(nanosleep)(&a_little, NULL);
  _exit(end_of_the_last);
}
static void* make_the_last(void* a) {
  usleep(2000);
  leave_natively(end_as_the_last, a);
  return a;
}
static atomic_int main_leaves;
static void tell(void* a) {
  (void)a;
  atomic_store(&main_leaves, 1);
}
static void* make_one_that_makes_the_last(void* a) {
  while (!atomic_load(&main_leaves)) C_LIBRARYS(sched_yield)();
  C_LIBRARYS(nanosleep)(&a_little, NULL);
  SAME(pthread_detach(begin(make_the_last, a)), 0);
  return a;
}
CASE(the_process_ends_after_its_last_thread_of_each_kind) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    end(begin(give_back, NULL));
    leave_natively(make_one_that_makes_the_last, NULL);
    pthread_cleanup_push(tell, NULL);
    pthread_exit(NULL);
    pthread_cleanup_pop(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  SAME(WEXITSTATUS(status), end_of_the_last);
}

static atomic_int* handlers_run;
static void count_in_both(void* a) {
  (void)a;
  atomic_fetch_add(handlers_run, 1);
}
static void exit_one_deeper(void) {
  pthread_cleanup_push(count_in_both, NULL);
  pthread_exit(NULL);
  pthread_cleanup_pop(0);
}
static void* fork_and_end_there(void* returns) {
  pid_t child;
  CHECK(pthread_self() != 0);
  pthread_cleanup_push(count_in_both, NULL);
  child = fork();
  if (child == 0) {
    begin_child();
    end(begin(give_back, NULL));
    if (returns == NULL) exit_one_deeper();
  }
  pthread_cleanup_pop(0);
  if (child != 0) reap(child);
  return NULL;
}
CASE(the_child_of_a_kernel_thread_s_fork_ends_with_that) {
  static int returns;
  handlers_run =
      mmap(NULL, sizeof *handlers_run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  run_natively(fork_and_end_there, NULL);
  SAME(*handlers_run, 2);
  run_natively(fork_and_end_there, &returns);
  SAME(*handlers_run, 2);
  munmap(handlers_run, sizeof *handlers_run);
}

/* The kernel keeps a thread of its own in the process from this on, as long as the ring is open. */
static int read_by_the_kernel(void) {
  static char byte;
  struct io_uring_params about = {0};
  const int ring = (int)syscall(SYS_io_uring_setup, 4, &about);
  if (ring < 0) return 0;
  const int share = PROT_READ | PROT_WRITE;
  char* const queue = mmap(NULL, about.sq_off.array + about.sq_entries * sizeof(unsigned), share,
                           MAP_SHARED, ring, IORING_OFF_SQ_RING);
  struct io_uring_sqe* const entry =
      mmap(NULL, about.sq_entries * sizeof *entry, share, MAP_SHARED, ring, IORING_OFF_SQES);
  CHECK(queue != MAP_FAILED && entry != MAP_FAILED);
  memset(entry, 0, sizeof *entry);
  entry->opcode = IORING_OP_READ;
  entry->flags = IOSQE_ASYNC;
  entry->fd = open("/dev/zero", O_RDONLY);
  entry->addr = (uintptr_t)&byte;
  entry->len = 1;
  *(unsigned*)(queue + about.sq_off.array) = 0;
  atomic_store((_Atomic unsigned*)(queue + about.sq_off.tail), 1);
  SAME(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0), 1);
  return 1;
}
enum { has_no_ring = 43 };
CASE(the_process_does_not_wait_for_threads_of_the_kernel) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    end(begin(give_back, NULL));
    if (!read_by_the_kernel()) _exit(has_no_ring);
    if (failures != 0) _exit(1);
    pthread_exit(NULL);
  }
  CHECK(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == has_no_ring) {
    skip("the system has no io_uring");
    return;
  }
  SAME(status, 0);
}
