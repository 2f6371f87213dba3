/* SPDX-License-Identifier: Apache-2.0 */
/* What the thread of main() may do that its handlers do too, and what ends its waits. With the
 * folder it is a kernel thread, which the kernel interrupts. */
#include <alloca.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/mman.h>

#include "check.h"

/* ---- handlers ---- */
static sem_t posted, over;
static pthread_t other;
static atomic_int posts, has_waited;
static void post_and_kill(int n) {
  const int error = errno;
  (void)n;
  sem_post(&posted);
  atomic_fetch_add(&posts, 1);
  pthread_kill(other, SIGUSR2);
  errno = error;
}
static void* wait_once(void* a) {
  SAME(sem_wait(&posted), 0);
  atomic_store(&has_waited, 1);
  while (sem_wait(&over) != 0) SAME(errno, EINTR);
  return a;
}
static timer_t begin_timer(int number, long us) {
  struct sigevent event = {0};
  const struct itimerspec often = {{0, us * 1000}, {0, us * 1000}};
  timer_t timer = 0;
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = number;
  SAME(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  SAME(timer_settime(timer, 0, &often, NULL), 0);
  return timer;
}
CASE(a_handler_does_what_it_interrupts) {
  enum { times = 50000 };
  sigset_t both, one, before;
  int left = 0;
  sem_init(&posted, 0, 0);
  sem_init(&over, 0, 0);
  atomic_store(&posts, 0);
  atomic_store(&has_waited, 0);
  signal(SIGUSR1, post_and_kill);
  sigemptyset(&both);
  sigaddset(&both, SIGUSR1);
  sigaddset(&both, SIGUSR2);
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &both, &before);
  other = begin(wait_once, NULL);
  pthread_sigmask(SIG_UNBLOCK, &one, NULL);
  usleep(2000); /* once somebody waits there a post looks for who does */
  sem_post(&posted);
  await(&has_waited, 1);
  const timer_t timer = begin_timer(SIGUSR1, 50);
  for (int i = 0; i < times; ++i) {
    SAME(sem_post(&posted), 0);
    if (i % 4 == 0) SAME(pthread_kill(other, SIGUSR2), 0);
    if (i % 16 == 0) SAME(pthread_sigmask(SIG_BLOCK, NULL, NULL), 0);
    while (sem_wait(&posted) != 0) SAME(errno, EINTR);
  }
  SAME(timer_delete(timer), 0);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  SAME(sem_getvalue(&posted, &left), 0);
  SAME(left, posts);
  CHECK(left > 0);
  sem_post(&over);
  end(other);
  signal(SIGUSR1, SIG_DFL);
}

/* ---- cancellation ---- */
static int waits_first;
static void* cancel_the_first_thread(void* a) {
  if (waits_first) usleep(3000);
  void* result = NULL;
  SAME(pthread_cancel(*(pthread_t*)a), 0);
  SAME(pthread_join(*(pthread_t*)a, &result), 0);
  CHECK(result == PTHREAD_CANCELED);
  _exit(failures != 0);
}
/* In the child of a fork: it is its first thread that is cancelled. */
static void check_cancellation(void (*wait)(void)) {
  for (waits_first = 0; waits_first < 2; ++waits_first) {
    const pid_t child = fork();
    if (child == 0) {
      begin_child();
      static pthread_t own; /* our frame will be gone */
      own = pthread_self();
      begin(cancel_the_first_thread, &own);
      wait();
      _exit(2);
    }
    reap(child);
  }
}
static void sleep_long(void) { sleep(1000); }
CASE(cancel_ends_the_first_thread_s_sleep) { check_cancellation(sleep_long); }
static void pause_long(void) { pause(); }
CASE(cancel_ends_the_first_thread_s_pause) { check_cancellation(pause_long); }
static void suspend_long(void) {
  sigset_t none;
  sigemptyset(&none);
  sigsuspend(&none);
}
CASE(cancel_ends_the_first_thread_s_wait_with_a_mask) { check_cancellation(suspend_long); }
static sem_t* shared_semaphore(void) {
  void* const at =
      mmap(NULL, sizeof(sem_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  SAME(sem_init(at, 1, 0), 0);
  return at;
}
static void wait_for_process(void) { sem_wait(shared_semaphore()); }
static void wait_for_process_until(void) {
  const struct timespec late = from_now(CLOCK_REALTIME, 1000000);
  sem_timedwait(shared_semaphore(), &late);
}
CASE(a_time_before_the_machine_began_has_passed) {
  const struct timespec long_ago[] = {{0, 0}, {1, 5}, {-7, 0}};
  sem_t* const shared = shared_semaphore();
  for (int i = 0; i < 3; ++i) {
    SAME(sem_timedwait(shared, &long_ago[i]), -1);
    SAME(errno, ETIMEDOUT);
  }
  SAME(sem_post(shared), 0);
  SAME(sem_timedwait(shared, &long_ago[0]), 0);
}
CASE(cancel_ends_the_first_thread_s_wait_for_other_processes) {
  check_cancellation(wait_for_process);
  check_cancellation(wait_for_process_until);
}

/* ---- handlers that sleep, and that leave a sleep ---- */
#ifndef STRATA_TEST_TSAN /* which calls no handler there before the wait is over */
static pthread_mutex_t outer_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t outer = PTHREAD_COND_INITIALIZER;
static atomic_int waits, has_napped;
static void nap(int n) {
  const struct timespec little = {0, 1000000};
  (void)n;
  nanosleep(&little, NULL);
  atomic_store(&has_napped, 1);
}
static void* disturb_and_cancel(void* a) {
  const pthread_t first = *(pthread_t*)a;
  void* result = NULL;
  await(&waits, 1);
  pthread_mutex_lock(&outer_lock); /* it waits, or does not have to */
  pthread_mutex_unlock(&outer_lock);
  SAME(pthread_kill(first, SIGUSR1), 0);
  await(&has_napped, 1);
  usleep(3000); /* which is behind its handler, else it is cancelled in there */
  SAME(pthread_cancel(first), 0);
  SAME(pthread_join(first, &result), 0);
  CHECK(result == PTHREAD_CANCELED);
  _exit(failures != 0);
}
/* The kernel begins the outer wait again: that is what the cancellation has to find. */
CASE(a_handler_that_sleeps_hides_no_cancellation) {
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    struct sigaction action = {0};
    action.sa_handler = nap;
    action.sa_flags = SA_RESTART;
    SAME(sigaction(SIGUSR1, &action, NULL), 0);
    static pthread_t own; /* our frame will be gone */
    own = pthread_self();
    begin(disturb_and_cancel, &own);
    pthread_mutex_lock(&outer_lock);
    atomic_store(&waits, 1);
    for (;;) pthread_cond_wait(&outer, &outer_lock);
  }
  reap(child);
}

static sigjmp_buf out_of_sleep;
static void leave_sleep(int n) {
  (void)n;
  siglongjmp(out_of_sleep, 1);
}
__attribute__((noinline)) static void sleep_below(volatile size_t bytes) {
  const struct timespec very_long_time = {1000, 0};
  volatile char* const room = alloca(bytes);
  room[0] = 1;
  if (sigsetjmp(out_of_sleep, 1) == 0) {
    ualarm(1000, 0);
    nanosleep(&very_long_time, NULL);
    CHECK(!"reached");
  }
}
enum { depths = 40, depth_bytes = 208, condition_bytes = 56, conditions = 20000 };
/* What others do with waits, above what was left there. */
__attribute__((noinline)) static void check_that_nothing_was_left(void) {
  static _Alignas(pthread_cond_t) char all[conditions * condition_bytes];
  volatile char room[depths * depth_bytes + 8192];
  const struct timespec past = from_now(CLOCK_REALTIME, -1);
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  size_t changed = 0;
  for (size_t i = 0; i < sizeof room; ++i) room[i] = 0x41;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < conditions; ++i) {
    pthread_cond_t* const one = (pthread_cond_t*)(all + i * condition_bytes);
    SAME(pthread_cond_timedwait(one, &lock, &past), ETIMEDOUT);
    SAME(pthread_cond_signal(one), 0);
  }
  pthread_mutex_unlock(&lock);
  for (size_t i = 0; i < sizeof room; ++i) changed += room[i] != 0x41;
  SAME(changed, 0);
}
CASE(a_handler_leaves_the_first_thread_s_sleep) {
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    CHECK(pthread_self() != 0); /* known from now on */
    signal(SIGALRM, leave_sleep);
    for (int i = 0; i < depths; ++i) sleep_below(i * depth_bytes + 16);
    check_that_nothing_was_left();
    _exit(failures != 0);
  }
  reap(child);
}
#endif

/* ---- what else ends those waits ---- */
static atomic_int handled;
static void count(int n) {
  (void)n;
  atomic_fetch_add(&handled, 1);
}
static void handle_with(int flags) {
  struct sigaction action = {0};
  action.sa_handler = count;
  action.sa_flags = flags;
  SAME(sigaction(SIGUSR1, &action, NULL), 0);
}
CASE(a_handler_ends_the_first_thread_s_waits) {
  sigset_t one, before;
  sem_t* const shared = shared_semaphore();
  handle_with(SA_RESTART);
  atomic_store(&handled, 0);
  timer_t timer = begin_timer(SIGUSR1, 1000);
  SAME(pause(), -1);
  SAME(errno, EINTR);
  timer_delete(timer);
  CHECK(handled > 0);
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, &before);
  atomic_store(&handled, 0);
  timer = begin_timer(SIGUSR1, 1000);
  SAME(sigsuspend(&before), -1);
  SAME(errno, EINTR);
  timer_delete(timer);
  CHECK(handled > 0);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  handle_with(0);
  timer = begin_timer(SIGUSR1, 1000);
  SAME(sem_wait(shared), -1);
  SAME(errno, EINTR);
  timer_delete(timer);
  signal(SIGUSR1, SIG_DFL);
}
static void* post_after_handlers(void* semaphore) {
  while (atomic_load(&handled) < 3) sched_yield();
  SAME(sem_post(semaphore), 0);
  return semaphore;
}
/* As of programs that tell of their end: it says nothing of what the others do. */
CASE(a_handler_for_abort_ends_no_wait_for_other_processes) {
  struct sigaction action = {0};
  sem_t* const shared = shared_semaphore();
  CHECK(pthread_self() != 0); /* known from now on */
  action.sa_handler = count;
  SAME(sigaction(SIGABRT, &action, NULL), 0);
  handle_with(SA_RESTART);
  atomic_store(&handled, 0);
  const pthread_t posts_then = begin(post_after_handlers, shared);
  const timer_t timer = begin_timer(SIGUSR1, 1000);
  SAME(sem_wait(shared), 0);
  timer_delete(timer);
  end(posts_then);
  signal(SIGUSR1, SIG_DFL);
  signal(SIGABRT, SIG_DFL);
}

/* ---- other clocks ---- */
static struct timespec very_long = {1000, 0};
static void* sleep_on_boot_time(void* a) {
  clock_nanosleep(CLOCK_BOOTTIME, 0, &very_long, NULL);
  return a;
}
static void* sleep_on_atomic_time(void* a) {
  struct timespec end_of_it;
  clock_gettime(CLOCK_TAI, &end_of_it);
  end_of_it.tv_sec += 1000;
  clock_nanosleep(CLOCK_TAI, TIMER_ABSTIME, &end_of_it, NULL);
  return a;
}
static void* sleep_on_processor_time(void* a) {
  clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &very_long, NULL);
  return a;
}
static void* cancel_it(void* a) {
  usleep(1000);
  SAME(pthread_cancel(*(pthread_t*)a), 0);
  return a;
}
CASE(other_clocks_keep_nobody_from_running) {
  void* (*const sleepers[])(void*) = {sleep_on_boot_time, sleep_on_atomic_time,
                                      sleep_on_processor_time};
  for (int i = 0; i < 3; ++i) {
    pthread_t sleeper = begin(sleepers[i], NULL);
    end(begin(cancel_it, &sleeper));
    CHECK(end(sleeper) == PTHREAD_CANCELED);
  }
}
static void* sleep_a_little(void* a) {
  const clockid_t clocks[] = {CLOCK_BOOTTIME, CLOCK_TAI};
  for (int i = 0; i < 2; ++i) {
    struct timespec before, after;
    const struct timespec little = {0, 3000000};
    clock_gettime(clocks[i], &before);
    SAME(clock_nanosleep(clocks[i], 0, &little, NULL), 0);
    clock_gettime(clocks[i], &after);
    CHECK((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec >= 3000000);
    before = from_now(clocks[i], 3);
    SAME(clock_nanosleep(clocks[i], TIMER_ABSTIME, &before, NULL), 0);
    clock_gettime(clocks[i], &after);
    CHECK(after.tv_sec > before.tv_sec ||
          (after.tv_sec == before.tv_sec && after.tv_nsec >= before.tv_nsec));
  }
  const struct timespec past = {0, 0}, wrong = {0, 1000000000};
  SAME(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &past, NULL), 0);
  SAME(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &past, NULL), EINVAL);
  SAME(clock_nanosleep(CLOCK_BOOTTIME, 0, &wrong, NULL), EINVAL);
  SAME(clock_nanosleep(12345, 0, &past, NULL), EINVAL);
  return a;
}
CASE(other_clocks_are_slept_on) { end(begin(sleep_a_little, NULL)); }
static atomic_int has_slept;
static void* sleep_while_others_compute(void* a) {
  const struct timespec little = {0, 3000000};
  SAME(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &little, NULL), 0);
  atomic_store(&has_slept, 1);
  return a;
}
CASE(processor_time_is_slept_on) {
  atomic_store(&has_slept, 0);
  pthread_t t = begin(sleep_while_others_compute, NULL);
  await(&has_slept, 1);
  end(t);
}

/* ---- when the process ends ---- */
static pthread_t first_thread;
static pthread_key_t key_at_exit;
static pthread_mutex_t held_at_exit;
static void is_not_destroyed(void* a) {
  (void)a;
  CHECK(!"exit() destroys no values of keys");
}
static void look_at_exit(void) {
  CHECK(pthread_equal(first_thread, pthread_self()));
  CHECK(pthread_getspecific(key_at_exit) == &key_at_exit);
  SAME(pthread_mutex_unlock(&held_at_exit), 0);
  _exit(failures != 0);
}
CASE(exit_leaves_the_first_thread_its_values_and_locks) {
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutexattr_t attributes;
    begin_child();
    first_thread = pthread_self();
    SAME(pthread_key_create(&key_at_exit, is_not_destroyed), 0);
    SAME(pthread_setspecific(key_at_exit, &key_at_exit), 0);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    SAME(pthread_mutex_init(&held_at_exit, &attributes), 0);
    SAME(pthread_mutex_lock(&held_at_exit), 0);
    atexit(look_at_exit);
    exit(1);
  }
  reap(child);
}

/* ---- when it has ended ---- */
static void* give_back(void* a) { return a; }
/* Whose record is used for the next thread. */
static int has_its_number(pthread_t t) { return (uint32_t)t == (uint32_t)thread_of_main; }
static _Atomic(char*) handled_at;
static void note_where(int n) {
  char here;
  (void)n;
  atomic_store(&handled_at, &here);
}
static _Atomic(char*) lives_at;
static void* live_until_cancelled(void* a) {
  static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  char here;
  atomic_store(&lives_at, &here);
  while (atomic_load(&handled_at) == NULL) usleep(100);
  pthread_mutex_lock(&m);
  for (;;) pthread_cond_wait(&never, &m);
  return a;
}
CASE_AFTER_MAIN(what_is_for_another_thread_does_not_come_to_the_first) {
  enum { tries = 20, stack_used_max = 1 << 16 };
  pthread_t t = begin(give_back, NULL);
  for (int i = 0; on_strata() && i < tries && !has_its_number(t); ++i) {
    end(t);
    usleep(1000);
    t = begin(give_back, NULL);
  }
  end(t);
  usleep(1000); /* it waits for us by now */
  signal(SIGUSR1, note_where);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  SAME(pthread_sigmask(SIG_UNBLOCK, &one, NULL), 0);
  t = begin(live_until_cancelled, NULL);
  SAME(pthread_kill(t, SIGUSR1), 0);
  while (atomic_load(&lives_at) == NULL || atomic_load(&handled_at) == NULL) usleep(100);
  CHECK(labs(atomic_load(&handled_at) - atomic_load(&lives_at)) < stack_used_max);
  usleep(5000);
  SAME(pthread_cancel(t), 0);
  CHECK(end(t) == PTHREAD_CANCELED);
  signal(SIGUSR1, SIG_DFL);
}
