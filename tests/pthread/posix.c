/* SPDX-License-Identifier: Apache-2.0 */
/* What the standard says of processes, signals and attributes. */
#include <limits.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "alone.h"
#include "check.h"

/* ---- objects that processes share ---- */
struct shared {
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  pthread_rwlock_t lock;
  pthread_barrier_t barrier;
  sem_t semaphore;
  int number;
  int go;
};
static struct shared* map_shared(int kind) {
  struct shared* s =
      mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t ma;
  pthread_condattr_t ca;
  pthread_rwlockattr_t ra;
  pthread_barrierattr_t ba;
  pthread_mutexattr_init(&ma);
  pthread_condattr_init(&ca);
  pthread_rwlockattr_init(&ra);
  pthread_barrierattr_init(&ba);
  SAME(pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED), 0);
  SAME(pthread_mutexattr_settype(&ma, kind), 0);
  SAME(pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED), 0);
  SAME(pthread_rwlockattr_setpshared(&ra, PTHREAD_PROCESS_SHARED), 0);
  SAME(pthread_barrierattr_setpshared(&ba, PTHREAD_PROCESS_SHARED), 0);
  SAME(pthread_mutex_init(&s->mutex, &ma), 0);
  SAME(pthread_cond_init(&s->cond, &ca), 0);
  SAME(pthread_rwlock_init(&s->lock, &ra), 0);
  SAME(pthread_barrier_init(&s->barrier, &ba, 2), 0);
  SAME(sem_init(&s->semaphore, 1, 0), 0);
  return s;
}
static void unmap_shared(struct shared* s) {
  SAME(pthread_mutex_destroy(&s->mutex), 0);
  SAME(pthread_cond_destroy(&s->cond), 0);
  SAME(pthread_rwlock_destroy(&s->lock), 0);
  SAME(pthread_barrier_destroy(&s->barrier), 0);
  SAME(sem_destroy(&s->semaphore), 0);
  munmap(s, sizeof *s);
}
static void* use_shared(void* a) {
  struct shared* s = a;
  for (int i = 0; i < 100; ++i) {
    SAME(pthread_mutex_lock(&s->mutex), 0);
    const int n = s->number;
    if (i % 10 == 0) sched_yield();
    s->number = n + 1;
    SAME(pthread_mutex_unlock(&s->mutex), 0);
  }
  const int last = pthread_barrier_wait(&s->barrier);
  CHECK(last == 0 || last == PTHREAD_BARRIER_SERIAL_THREAD);
  SAME(pthread_rwlock_wrlock(&s->lock), 0);
  s->number += 1000;
  SAME(pthread_rwlock_unlock(&s->lock), 0);
  pthread_mutex_lock(&s->mutex);
  while (s->go == 0) SAME(pthread_cond_wait(&s->cond, &s->mutex), 0);
  pthread_mutex_unlock(&s->mutex);
  SAME(sem_post(&s->semaphore), 0);
  return NULL;
}
static void other_side(struct shared* s) {
  for (int i = 0; i < 100; ++i) {
    SAME(pthread_mutex_lock(&s->mutex), 0);
    ++s->number;
    SAME(pthread_mutex_unlock(&s->mutex), 0);
  }
  const int last = pthread_barrier_wait(&s->barrier);
  CHECK(last == 0 || last == PTHREAD_BARRIER_SERIAL_THREAD);
  SAME(pthread_rwlock_rdlock(&s->lock), 0);
  CHECK(s->number % 1000 == 200);
  SAME(pthread_rwlock_unlock(&s->lock), 0);
  pthread_mutex_lock(&s->mutex);
  s->go = 1;
  pthread_cond_broadcast(&s->cond);
  pthread_mutex_unlock(&s->mutex);
  SAME(sem_wait(&s->semaphore), 0);
  SAME(s->number, 1200);
}
CASE(shared_by_threads) {
  struct shared* s = map_shared(PTHREAD_MUTEX_NORMAL);
  pthread_t t = begin(use_shared, s);
  other_side(s);
  end(t);
  unmap_shared(s);
}
CASE(shared_by_processes) {
  struct shared* s = map_shared(PTHREAD_MUTEX_ERRORCHECK);
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    use_shared(s);
    _exit(failures != 0);
  }
  other_side(s);
  reap(child);
  unmap_shared(s);
}
CASE(shared_mutex_knows_its_owner) {
  struct shared* s = map_shared(PTHREAD_MUTEX_ERRORCHECK);
  SAME(pthread_mutex_lock(&s->mutex), 0);
  SAME(pthread_mutex_lock(&s->mutex), EDEADLK);
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    struct timespec soon = from_now(CLOCK_REALTIME, 10);
    SAME(pthread_mutex_trylock(&s->mutex), EBUSY);
    SAME(pthread_mutex_unlock(&s->mutex), EPERM);
    SAME(pthread_mutex_timedlock(&s->mutex, &soon), ETIMEDOUT);
    _exit(failures != 0);
  }
  reap(child);
  SAME(pthread_mutex_unlock(&s->mutex), 0);
  unmap_shared(s);
}
CASE(shared_waits_time_out) {
  struct shared* s = map_shared(PTHREAD_MUTEX_RECURSIVE);
  struct timespec soon = from_now(CLOCK_REALTIME, 10);
  SAME(sem_timedwait(&s->semaphore, &soon), -1);
  SAME(errno, ETIMEDOUT);
  pthread_mutex_lock(&s->mutex);
  pthread_mutex_lock(&s->mutex);
  SAME(pthread_cond_timedwait(&s->cond, &s->mutex, &soon), ETIMEDOUT);
  SAME(pthread_mutex_unlock(&s->mutex), 0);
  SAME(pthread_mutex_unlock(&s->mutex), 0);
  SAME(pthread_mutex_unlock(&s->mutex), EPERM);
  unmap_shared(s);
}

/* ---- a process of one thread: the child of a fork ---- */
static void* add_one(void* a) {
  usleep(100);
  ++*(int*)a;
  return a;
}
static void sleep_and_make_threads(void) {
  int sum = 0;
  const pthread_t own = pthread_self();
  struct timespec time = {0, 2000000}, soon = from_now(CLOCK_REALTIME, 5);
  SAME(nanosleep(&time, NULL), 0);
  sem_t s;
  sem_init(&s, 0, 0);
  SAME(sem_timedwait(&s, &soon), -1);
  SAME(errno, ETIMEDOUT);
  for (int i = 0; i < 5; ++i) CHECK(end(begin(add_one, &sum)) == &sum);
  SAME(sum, 5);
  CHECK(pthread_equal(own, pthread_self()));
}
static pthread_mutex_t over_fork = PTHREAD_MUTEX_INITIALIZER;
static void fork_and_wait(void) {
  const pthread_t own = pthread_self();
  pthread_mutex_lock(&over_fork);
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    CHECK(pthread_equal(own, pthread_self()));
    SAME(pthread_mutex_unlock(&over_fork), 0);
    sleep_and_make_threads();
    _exit(failures != 0);
  }
  SAME(pthread_mutex_unlock(&over_fork), 0);
  reap(child);
}
static void* fork_there(void* a) {
  fork_and_wait();
  return a;
}
CASE(child_of_a_fork_goes_on) {
  end(begin(add_one, &(int){0})); /* our runtime is there */
  fork_and_wait();
  end(begin(fork_there, NULL));
}
static void* return_in_child(void* a) {
  const pid_t child = fork();
  if (child == 0) begin_child();
  if (child != 0) *(pid_t*)a = child;
  return a;
}
CASE(thread_that_returns_in_the_child_ends_it) {
  pid_t child = -1;
  const pid_t parent = getpid();
  end(begin(return_in_child, &child));
  CHECK(getpid() == parent);
  reap(child);
}
/* Somebody else is in the library all the time. */
static atomic_int stop_asking;
static void* ask_for(void* a) {
  for (int i = 1; !atomic_load(&stop_asking); ++i) {
    pthread_kill(*(pthread_t*)a, 0);
    if (i % 1000 == 0) sched_yield();
  }
  return a;
}
CASE(fork_while_another_thread_looks_at_the_caller) {
  pthread_t own = pthread_self();
  atomic_store(&stop_asking, 0);
  pthread_t t = begin(ask_for, &own);
  for (int i = 0; i < 30; ++i) {
    usleep(100);
    const pid_t child = fork();
    if (child == 0) {
      begin_child();
      pthread_testcancel();
      _exit(failures != 0);
    }
    reap(child);
  }
  atomic_store(&stop_asking, 1);
  end(t);
}
/* The program's handlers may wait for threads that are in the library. */
static pthread_mutex_t of_handlers = PTHREAD_MUTEX_INITIALIZER;
static atomic_int use_handlers, in_handler, holds_it;
static void lock_before_fork(void) {
  if (!atomic_load(&use_handlers)) return;
  atomic_store(&in_handler, 1);
  pthread_mutex_lock(&of_handlers);
}
static void unlock_after_fork(void) {
  if (atomic_load(&use_handlers)) pthread_mutex_unlock(&of_handlers);
}
__attribute__((constructor)) static void handle_forks(void) {
  pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork);
}
static void* make_a_thread_holding_it(void* a) {
  pthread_mutex_lock(&of_handlers);
  atomic_store(&holds_it, 1);
  await(&in_handler, 1);
  end(begin(add_one, &(int){0}));
  pthread_mutex_unlock(&of_handlers);
  return a;
}
CASE(handlers_of_a_fork_wait_for_threads) {
  atomic_store(&in_handler, 0);
  atomic_store(&holds_it, 0);
  pthread_t t = begin(make_a_thread_holding_it, NULL);
  await(&holds_it, 1);
  atomic_store(&use_handlers, 1);
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    SAME(pthread_mutex_lock(&of_handlers), 0);
    _exit(failures != 0);
  }
  atomic_store(&use_handlers, 0);
  reap(child);
  end(t);
}
static pthread_once_t once_over_fork = PTHREAD_ONCE_INIT;
static atomic_int in_once, leave_once;
static void stay_in_once(void) {
  atomic_store(&in_once, 1);
  await(&leave_once, 1);
}
static void* call_once_there(void* a) {
  SAME(pthread_once(&once_over_fork, stay_in_once), 0);
  return a;
}
CASE(once_in_the_child_waits_for_nobody) {
  pthread_t t = begin(call_once_there, NULL);
  await(&in_once, 1);
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    atomic_store(&leave_once, 1);
    atomic_store(&in_once, 0);
    SAME(pthread_once(&once_over_fork, stay_in_once), 0);
    SAME(in_once, 1);
    _exit(failures != 0);
  }
  reap(child);
  atomic_store(&leave_once, 1);
  end(t);
}
/* ---- programs that are started ---- */
static const char* const end_itself = "kill -TERM $$; exit 7";
static void* start_programs(void* a) {
  char* const arguments[] = {"sh", "-c", (char*)end_itself, NULL};
  pid_t child = -1;
  int status = -1;
  SAME(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ), 0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  SAME(posix_spawnp(&child, "sh", NULL, NULL, arguments, environ), 0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  child = vfork();
  if (child == 0) {
    execvp("sh", arguments);
    _exit(8);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  status = system(end_itself);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  FILE* const pipe = popen(end_itself, "r");
  CHECK(pipe != NULL);
  CHECK(fgetc(pipe) == EOF);
  status = pclose(pipe);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  return a;
}
CASE(programs_have_blocked_what_the_thread_has) {
  start_programs(NULL);
  end(begin(start_programs, NULL));
}

/* ---- signals ---- */
static _Atomic(pthread_t) handled_by;
static atomic_int times_handled;
static void note_signal(int n) {
  (void)n;
  atomic_store(&handled_by, pthread_self());
  atomic_fetch_add(&times_handled, 1);
}
static void handle(int number, int flags) {
  struct sigaction act;
  memset(&act, 0, sizeof act);
  act.sa_handler = note_signal;
  act.sa_flags = flags;
  sigaction(number, &act, NULL);
  atomic_store(&times_handled, 0);
}
static atomic_int waits, outcome;
static sem_t never;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static void* sem_wait_there(void* a) {
  atomic_store(&waits, 1);
  const int r = sem_wait(&never);
  atomic_store(&outcome, r == 0 ? 0 : errno);
  return a;
}
static void* nanosleep_there(void* a) {
  struct timespec time = {20, 0}, left = {0, 0};
  atomic_store(&waits, 1);
  const int r = nanosleep(&time, &left);
  atomic_store(&outcome, r == 0 ? 0 : errno);
  /* Linux counts up to the end of the timer's slack, 50 us later: one that is interrupted at once
     has a little more to go than it asked for. */
  CHECK(left.tv_sec >= 10 && (left.tv_sec < 20 || (left.tv_sec == 20 && left.tv_nsec < 1000000)));
  return a;
}
static void* lock_there(void* a) {
  atomic_store(&waits, 1);
  atomic_store(&outcome, pthread_mutex_lock(&held));
  pthread_mutex_unlock(&held);
  return a;
}
/* Until the handler has run; it does so at the latest when the thread begins to wait. */
static pthread_t begin_and_kill(void* (*what)(void*)) {
  atomic_store(&waits, 0);
  atomic_store(&outcome, -1);
  pthread_t t = begin(what, NULL);
  await(&waits, 1);
  SAME(pthread_kill(t, SIGUSR1), 0);
  while (atomic_load(&times_handled) == 0) usleep(500);
  CHECK(pthread_equal(handled_by, t));
  return t;
}
/* A signal that comes before the wait ends no wait: again, until one has. */
static void kill_until_it_ends(void* (*what)(void*)) {
  pthread_t t = begin_and_kill(what);
  while (atomic_load(&outcome) == -1) {
    pthread_kill(t, SIGUSR1);
    usleep(500);
  }
  end(t);
  SAME(outcome, EINTR);
}
CASE(kill_interrupts_a_semaphore) {
  sem_init(&never, 0, 0);
  handle(SIGUSR1, 0);
  kill_until_it_ends(sem_wait_there);
}
static void* sem_wait_uncancellably(void* a) {
  SAME(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL), 0);
  return sem_wait_there(a);
}
CASE(kill_interrupts_a_semaphore_also_when_cancellation_is_disabled) {
  sem_init(&never, 0, 0);
  handle(SIGUSR1, 0);
  kill_until_it_ends(sem_wait_uncancellably);
}
CASE(kill_restarts_a_semaphore) {
  sem_init(&never, 0, 0);
  handle(SIGUSR1, SA_RESTART);
  pthread_t t = begin_and_kill(sem_wait_there);
  sem_post(&never);
  end(t);
  SAME(outcome, 0);
}
CASE(kill_interrupts_sleep) {
  handle(SIGUSR1, SA_RESTART);
  kill_until_it_ends(nanosleep_there);
}
CASE(kill_does_not_end_waits_for_locks) {
  handle(SIGUSR1, 0);
  pthread_mutex_lock(&held);
  pthread_t t = begin_and_kill(lock_there);
  usleep(2000);
  SAME(outcome, -1);
  pthread_mutex_unlock(&held);
  end(t);
  SAME(outcome, 0);
}
static void* yield_until_handled(void* a) {
  atomic_store(&waits, 1);
  while (atomic_load(&times_handled) == 0) sched_yield();
  CHECK(pthread_equal(handled_by, pthread_self()));
  return a;
}
CASE(kill_reaches_a_thread_that_yields) {
  handle(SIGUSR1, 0);
  end(begin_and_kill(yield_until_handled));
}
static void* block_and_raise(void* a) {
  sigset_t set, before, pending;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  SAME(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
  SAME(sigismember(&before, SIGUSR1), 0);
  SAME(pthread_sigmask(99, &set, NULL), EINVAL);
  SAME(pthread_sigmask(99, NULL, &before), 0);
  SAME(sigismember(&before, SIGUSR1), 1);
  SAME(raise(SIGUSR1), 0);
  SAME(times_handled, 0);
  SAME(sigpending(&pending), 0);
  SAME(sigismember(&pending, SIGUSR1), 1);
  SAME(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
  SAME(times_handled, 1);
  CHECK(pthread_equal(handled_by, pthread_self()));
  SAME(sigpending(&pending), 0);
  SAME(sigismember(&pending, SIGUSR1), 0);
  return a;
}
CASE(blocked_signals_are_pending) {
  handle(SIGUSR1, 0);
  end(begin(block_and_raise, NULL));
}
static void post_never(int n) {
  (void)n;
  sem_post(&never);
}
static void* unblock_and_wait(void* a) {
  SAME(pthread_sigmask(SIG_UNBLOCK, a, NULL), 0);
  for (int i = 0; i < 200; ++i) {
    SAME(kill(getpid(), SIGUSR2), 0);
    while (sem_wait(&never) != 0) SAME(errno, EINTR);
  }
  return a;
}
/* All others have blocked it, so it is handled on behalf of the one that has not. */
CASE(handlers_of_the_process_post_semaphores) {
  sigset_t set, before;
  sem_init(&never, 0, 0);
  signal(SIGUSR2, post_never);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  end(begin(unblock_and_wait, &set));
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  signal(SIGUSR2, SIG_DFL);
}
static atomic_int value_handled;
static void note_value(int n, siginfo_t* info, void* context) {
  (void)context;
  atomic_store(&value_handled, info->si_value.sival_int);
  note_signal(n);
}
static void count_signal(int n) {
  (void)n;
  atomic_fetch_add(&times_handled, 1);
}
static void* wait_for_a_signal(void* a) {
  atomic_store(&waits, 1);
  while (atomic_load(&times_handled) == 0) usleep(500);
  return a;
}
static void* unblock_for_another(void* a) {
  SAME(pthread_sigmask(SIG_UNBLOCK, a, NULL), 0);
  return (void*)begin(wait_for_a_signal, NULL);
}
CASE(a_thread_inherits_what_is_unblocked) {
  sigset_t set, before;
  signal(SIGUSR2, count_signal);
  atomic_store(&times_handled, 0);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  atomic_store(&waits, 0);
  pthread_t t = (pthread_t)end(begin(unblock_for_another, &set));
  await(&waits, 1);
  SAME(kill(getpid(), SIGUSR2), 0);
  end(t);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  signal(SIGUSR2, SIG_DFL);
}
static void* mask_here(void* a) {
  SAME(pthread_sigmask(SIG_SETMASK, NULL, a), 0);
  return a;
}
CASE(a_thread_begins_with_the_mask_of_its_attributes) {
  pthread_attr_t a;
  sigset_t wanted, got, others;
  pthread_t t;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGUSR2);
  sigemptyset(&others);
  sigaddset(&others, SIGHUP);
  SAME(pthread_sigmask(SIG_BLOCK, &others, NULL), 0);
  SAME(pthread_attr_init(&a), 0);
  SAME(pthread_attr_setsigmask_np(&a, &wanted), 0);
  SAME(pthread_create(&t, &a, mask_here, &got), 0);
  end(t);
  SAME(sigismember(&got, SIGUSR2), 1);
  SAME(sigismember(&got, SIGHUP), 0);
  SAME(pthread_attr_setsigmask_np(&a, NULL), 0);
  SAME(pthread_create(&t, &a, mask_here, &got), 0);
  end(t);
  SAME(sigismember(&got, SIGUSR2), 0);
  SAME(sigismember(&got, SIGHUP), 1);
  SAME(pthread_attr_destroy(&a), 0);
  SAME(pthread_sigmask(SIG_UNBLOCK, &others, NULL), 0);
}
CASE(a_signal_brings_a_value) {
  struct sigaction act;
  memset(&act, 0, sizeof act);
  act.sa_sigaction = note_value;
  act.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR2, &act, NULL);
  atomic_store(&times_handled, 0);
  atomic_store(&waits, 0);
  pthread_t t = begin(wait_for_a_signal, NULL);
  await(&waits, 1);
  SAME(pthread_sigqueue(t, SIGUSR2, (union sigval){.sival_int = 77}), 0);
  end(t);
  SAME(value_handled, 77);
  SAME(pthread_sigqueue(pthread_self(), SIGUSR2, (union sigval){.sival_int = 78}), 0);
  SAME(value_handled, 78);
  signal(SIGUSR2, SIG_DFL);
}
static void* sigwait_twice(void* a) {
  int got = 0, sum = 0;
  atomic_store(&waits, 1);
  for (int i = 0; i < 2; ++i) {
    SAME(sigwait(a, &got), 0);
    sum += got;
  }
  return (void*)(long)sum;
}
CASE(no_signal_to_a_thread_in_sigwait_is_lost) {
  sigset_t set, before;
  handle(SIGHUP, 0);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  for (int i = 0; i < 20; ++i) {
    atomic_store(&waits, 0);
    atomic_store(&times_handled, 0);
    pthread_t t = begin(sigwait_twice, &set);
    await(&waits, 1);
    if (i % 5 == 0) usleep(2000);
    SAME(pthread_kill(t, SIGHUP), 0);
    SAME(pthread_kill(t, SIGUSR1), 0);
    SAME(pthread_kill(t, SIGUSR2), 0);
    SAME((long)end(t), SIGUSR1 + SIGUSR2);
    SAME(times_handled, 1);
    CHECK(pthread_equal(handled_by, t));
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  signal(SIGHUP, SIG_DFL);
}
CASE(cancel_ends_sigwait) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  for (int i = 0; i < 2; ++i) {
    atomic_store(&waits, 0);
    pthread_t t = begin(sigwait_twice, &set);
    await(&waits, 1);
    if (i == 0) usleep(2000);
    SAME(pthread_cancel(t), 0);
    CHECK(end(t) == PTHREAD_CANCELED);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- cancellation that does not wait ---- */
static atomic_int cleaned;
static void note_cleanup(void* a) { atomic_store((atomic_int*)a, 1); }
static void* lock_asynchronously(void* a) {
  SAME(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
  pthread_cleanup_push(note_cleanup, &cleaned);
  atomic_store(&waits, 1);
  pthread_mutex_lock(&held);
  pthread_cleanup_pop(0);
  return a;
}
CASE(asynchronous_cancellation_ends_a_wait_for_a_mutex) {
  atomic_store(&waits, 0);
  atomic_store(&cleaned, 0);
  pthread_mutex_lock(&held);
  pthread_t t = begin(lock_asynchronously, NULL);
  await(&waits, 1);
  SAME(pthread_cancel(t), 0);
  CHECK(end(t) == PTHREAD_CANCELED);
  SAME(cleaned, 1);
  SAME(pthread_mutex_unlock(&held), 0);
  SAME(pthread_mutex_lock(&held), 0);
  SAME(pthread_mutex_unlock(&held), 0);
}
static void* sigwait_asynchronously(void* set) {
  int number = 0;
  SAME(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
  atomic_store(&waits, 1);
  sigwait(set, &number);
  return NULL;
}
/* On the stack of the one before, which whoever waits for signals may still use. */
static void* keep_a_stack(void* a) {
  volatile unsigned char all[8192];
  for (size_t i = 0; i < sizeof all; ++i) all[i] = (unsigned char)i;
  usleep(25000);
  for (size_t i = 0; i < sizeof all; ++i) SAME(all[i], (unsigned char)i);
  return a;
}
CASE(asynchronous_cancellation_ends_sigwait) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  for (int i = 0; i < 5; ++i) {
    atomic_store(&waits, 0);
    pthread_t t = begin(sigwait_asynchronously, &set);
    await(&waits, 1);
    usleep(2000);
    SAME(pthread_cancel(t), 0);
    CHECK(end(t) == PTHREAD_CANCELED);
    CHECK(end(begin(keep_a_stack, &set)) == &set);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- attributes ---- */
static void* scheduling_there(void* a) {
  struct sched_param p = {-1};
  int policy = -1;
  SAME(pthread_getschedparam(pthread_self(), &policy, &p), 0);
  *(int*)a = policy * 1000 + p.sched_priority;
  return a;
}
static int explicit_scheduling(int policy, int priority, int* seen) {
  pthread_attr_t a;
  pthread_t t;
  struct sched_param p = {priority};
  pthread_attr_init(&a);
  SAME(pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED), 0);
  SAME(pthread_attr_setschedpolicy(&a, policy), 0);
  SAME(pthread_attr_setschedparam(&a, &p), 0);
  const int error = pthread_create(&t, &a, scheduling_there, seen);
  if (error == 0) end(t);
  pthread_attr_destroy(&a);
  return error;
}
CASE(scheduling_is_as_asked_for) {
  int seen = -1;
  SAME(explicit_scheduling(SCHED_OTHER, 0, &seen), 0);
  SAME(seen, SCHED_OTHER * 1000);
  /* Not everybody may. */
  const int error = explicit_scheduling(SCHED_FIFO, 7, &seen);
  CHECK(error == 0 || error == EPERM);
  if (error == 0) SAME(seen, SCHED_FIFO * 1000 + 7);
}
struct told {
  size_t guard_bytes;
  int inherits;
};
static void* told_there(void* a) {
  struct told* const told = a;
  pthread_attr_t own;
  SAME(pthread_getattr_np(pthread_self(), &own), 0);
  SAME(pthread_attr_getguardsize(&own, &told->guard_bytes), 0);
  SAME(pthread_attr_getinheritsched(&own, &told->inherits), 0);
  pthread_attr_destroy(&own);
  return a;
}
CASE(what_was_asked_for_is_told) {
  const size_t guards[] = {0, 4096, 65536};
  struct told told = {1, -1};
  pthread_attr_t a;
  pthread_t t;
  end(begin(told_there, &told));
  SAME(told.guard_bytes, 4096);
  SAME(told.inherits, PTHREAD_INHERIT_SCHED);
  pthread_attr_init(&a);
  SAME(pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED), 0);
  for (int i = 0; i < 3; ++i) {
    SAME(pthread_attr_setguardsize(&a, guards[i]), 0);
    SAME(pthread_create(&t, &a, told_there, &told), 0);
    end(t);
    SAME(told.guard_bytes, guards[i]);
    SAME(told.inherits, PTHREAD_EXPLICIT_SCHED);
  }
  pthread_attr_destroy(&a);
}
static void* size_there(void* a) {
  pthread_attr_t own;
  SAME(pthread_getattr_np(pthread_self(), &own), 0);
  SAME(pthread_attr_getstacksize(&own, a), 0);
  pthread_attr_destroy(&own);
  return a;
}
CASE(stack_size_is_as_asked_for) {
  pthread_attr_t a;
  pthread_t t;
  size_t bytes = 0;
  pthread_attr_init(&a);
  SAME(pthread_attr_setstacksize(&a, 2 << 20), 0);
  SAME(pthread_create(&t, &a, size_there, &bytes), 0);
  end(t);
  CHECK(bytes >= 2 << 20);
  pthread_attr_destroy(&a);
}
static void* own_clock(void* a) {
  clockid_t clock;
  struct timespec now;
  SAME(pthread_getcpuclockid(pthread_self(), &clock), 0);
  SAME(clock_gettime(clock, &now), 0);
  return a;
}
CASE(a_thread_has_a_cpu_clock) {
  own_clock(NULL);
  end(begin(own_clock, NULL));
}

/* ---- without <pthread.h> ---- */
static atomic_int told;
static int is_told(void) { return atomic_load(&told); }
static void* yield_until_told(void* a) {
  alone_yield_until(is_told);
  return a;
}
static void* usleep_until_told(void* a) {
  alone_usleep_until(is_told);
  return a;
}
static void* nanosleep_until_told(void* a) {
  alone_nanosleep_until(is_told);
  return a;
}
static void* tell(void* a) {
  atomic_store(&told, 1);
  return a;
}
CASE(yielding_and_sleeping_need_no_pthread_h) {
  void* (*const ways[])(void*) = {yield_until_told, usleep_until_told, nanosleep_until_told};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    atomic_store(&told, 0);
    pthread_t waiting = begin(ways[i], NULL);
    pthread_t telling = begin(tell, NULL);
    end(waiting);
    end(telling);
  }
}
static void* mask_and_raise(void* a) {
  sigset_t mask;
  SAME(alone_raise(SIGUSR1), 0);
  SAME(times_handled, 1);
  SAME(alone_block(SIGUSR1), 0);
  SAME(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
  CHECK(sigismember(&mask, SIGUSR1));
  return a;
}
CASE(masks_and_signals_of_a_thread_need_no_pthread_h) {
  handle(SIGUSR1, 0);
  end(begin(mask_and_raise, NULL));
  signal(SIGUSR1, SIG_DFL);
}
