/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a thread's signals when it goes elsewhere: out of a handler, or into a child. */
#include <setjmp.h>
#include <sys/syscall.h>

#include "check.h"

static atomic_int times;
static void count(int n) {
  (void)n;
  atomic_fetch_add(&times, 1);
}
static sigjmp_buf way_out;
static void leave(int n) {
  count(n);
  siglongjmp(way_out, 1);
}
static sigset_t both(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  return set;
}
/* It blocks SIGUSR2, too. */
static void handle(void (*handler)(int)) {
  struct sigaction act;
  memset(&act, 0, sizeof act);
  act.sa_handler = handler;
  act.sa_mask = both();
  act.sa_flags = SA_RESTART;
  SAME(sigaction(SIGUSR1, &act, NULL), 0);
  atomic_store(&times, 0);
}
static int is_blocked(int number) {
  sigset_t now;
  SAME(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
  return sigismember(&now, number);
}
static int is_pending(int number) {
  sigset_t now;
  SAME(sigpending(&now), 0);
  return sigismember(&now, number);
}

/* ---- handlers that are left ---- */
static void let_in_what_leaves(void) {
  sigset_t set = both();
  SAME(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
  SAME(pthread_kill(pthread_self(), SIGUSR1), 0);
  SAME(is_pending(SIGUSR1), 1);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  CHECK(!"reached");
}
static void* leave_handlers(void* a) {
  static volatile int i;
  SAME(is_blocked(SIGUSR1), 0);
  for (i = 0; i < 3; ++i) {
    if (sigsetjmp(way_out, 1) == 0) let_in_what_leaves();
    SAME(times, 2 * i + 1);
    SAME(is_blocked(SIGUSR1), 0);
    SAME(is_blocked(SIGUSR2), 0);
    if (sigsetjmp(way_out, 1) == 0) raise(SIGUSR1);
    SAME(times, 2 * i + 2);
    SAME(is_pending(SIGUSR1), 0);
  }
  return a;
}
CASE(handlers_that_are_left_block_nothing_any_more) {
  handle(leave);
  leave_handlers(NULL);
  handle(leave);
  end(begin(leave_handlers, NULL));
  signal(SIGUSR1, SIG_DFL);
}
/* The next one comes higher up, before anything else asks. */
static volatile int leaves;
static void leave_once(int n) {
  count(n);
  if (!leaves) return;
  leaves = 0;
  siglongjmp(way_out, 1);
}
static void ask(int n) {
  (void)n;
  SAME(is_pending(SIGUSR1), 0);
}
__attribute__((noinline)) static void let_in_from_below(void) {
  volatile char room[65536];
  room[0] = 1;
  let_in_what_leaves();
  CHECK(room[0] == 1);
}
CASE(a_handler_that_comes_after_one_that_was_left_blocks_nothing_again) {
  SAME(signal(SIGUSR2, ask) == SIG_DFL, 1);
  handle(leave_once);
  leaves = 1;
  if (sigsetjmp(way_out, 1) == 0) let_in_from_below();
  SAME(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR2), 0);
  SAME(times, 1);
  SAME(pthread_kill(pthread_self(), SIGUSR1), 0);
  SAME(times, 2);
  signal(SIGUSR1, SIG_DFL);
  signal(SIGUSR2, SIG_DFL);
}
enum { often = 5 };
static atomic_int asks_for;
static void* yield_until_left_often(void* a) {
  sigsetjmp(way_out, 1);
  atomic_store(&asks_for, atomic_load(&times) + 1);
  while (atomic_load(&times) < often) sched_yield();
  return a;
}
CASE(what_is_sent_comes_after_a_handler_that_was_left) {
  handle(leave);
  atomic_store(&asks_for, 0);
  pthread_t t = begin(yield_until_left_often, NULL);
  for (int i = 1; i <= often; ++i) {
    await(&asks_for, i);
    SAME(pthread_kill(t, SIGUSR1), 0);
  }
  end(t);
  SAME(times, often);
  signal(SIGUSR1, SIG_DFL);
}

/* ---- the child of a fork ---- */
static void* fork_while_it_is_pending(void* a) {
  sigset_t set = both();
  handle(count);
  SAME(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
  SAME(raise(SIGUSR1), 0);
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    SAME(is_pending(SIGUSR1), 0);
    SAME(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    SAME(times, 0);
    SAME(raise(SIGUSR1), 0);
    SAME(times, 1);
    _exit(failures != 0);
  }
  reap(child);
  SAME(is_pending(SIGUSR1), 1);
  SAME(times, 0);
  SAME(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
  SAME(times, 1);
  return a;
}
static atomic_int computes, is_sent;
/* Ours has it to come, the C library's has handled it. */
static void* fork_before_it_is_handled(void* a) {
  atomic_store(&computes, 1);
  while (!atomic_load(&is_sent)) {
  }
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    const int before = atomic_load(&times);
    pthread_testcancel();
    SAME(times, before);
    _exit(failures != 0);
  }
  reap(child);
  pthread_testcancel();
  SAME(times, 1);
  return a;
}
CASE(what_has_come_is_not_handled_in_the_child) {
  handle(count);
  atomic_store(&computes, 0);
  atomic_store(&is_sent, 0);
  pthread_t t = begin(fork_before_it_is_handled, NULL);
  await(&computes, 1);
  SAME(pthread_kill(t, SIGUSR1), 0);
  atomic_store(&is_sent, 1);
  end(t);
  signal(SIGUSR1, SIG_DFL);
}
CASE(what_is_pending_is_not_the_childs) {
  fork_while_it_is_pending(NULL);
  end(begin(fork_while_it_is_pending, NULL));
  signal(SIGUSR1, SIG_DFL);
}
