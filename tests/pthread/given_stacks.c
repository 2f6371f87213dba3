/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that the program gives: threads run there and nowhere else, and when they have ended the
 * memory is the program's. */
#include <sys/wait.h>

#include "check.h"

enum { STACK_BYTES = 128 << 10, SMALLEST_BYTES = 16 << 10 };

struct given {
  pthread_attr_t attributes;
  char* memory;
  size_t bytes;
};

static struct given give(size_t bytes) {
  struct given g;
  void* memory = NULL;
  SAME(posix_memalign(&memory, 4096, bytes), 0);
  g.memory = memory;
  g.bytes = bytes;
  SAME(pthread_attr_init(&g.attributes), 0);
  SAME(pthread_attr_setstack(&g.attributes, memory, bytes), 0);
  return g;
}
static void take_back(struct given* g) {
  SAME(pthread_attr_destroy(&g->attributes), 0);
  memset(g->memory, 0x5a, g->bytes);
  free(g->memory);
}
static pthread_t begin_on(struct given* g, void* (*start)(void*), void* argument) {
  pthread_t t;
  SAME(pthread_create(&t, &g->attributes, start, argument), 0);
  return t;
}
__attribute__((noinline)) static int lies_in(const struct given* g, const volatile void* what) {
  const char* const at = (const char*)what;
  return at >= g->memory && at < g->memory + g->bytes;
}

static void* look_where_it_is(void* argument) {
  struct given* const g = argument;
  volatile char here = 1;
  pthread_attr_t a;
  void* lowest = NULL;
  size_t bytes = 0;
  CHECK(lies_in(g, &here));
  SAME(pthread_getattr_np(pthread_self(), &a), 0);
  SAME(pthread_attr_getstack(&a, &lowest, &bytes), 0);
  CHECK(lowest == g->memory);
  SAME(bytes, g->bytes);
  pthread_attr_destroy(&a);
  return g->memory;
}
CASE(a_given_stack_is_the_threads) {
  struct given g = give(STACK_BYTES);
  CHECK(end(begin_on(&g, &look_where_it_is, &g)) == g.memory);
  take_back(&g);
}
static void* wait_for(void* mutex) {
  SAME(pthread_mutex_lock(mutex), 0);
  SAME(pthread_mutex_unlock(mutex), 0);
  return NULL;
}
CASE(the_attributes_of_another_thread_tell_its_given_stack) {
  struct given g = give(STACK_BYTES);
  pthread_mutex_t hold = PTHREAD_MUTEX_INITIALIZER;
  pthread_attr_t a;
  void* lowest = NULL;
  size_t bytes = 0;
  pthread_t t;
  pthread_mutex_lock(&hold);
  t = begin_on(&g, &wait_for, &hold);
  SAME(pthread_getattr_np(t, &a), 0);
  SAME(pthread_attr_getstack(&a, &lowest, &bytes), 0);
  CHECK(lowest == g.memory);
  SAME(bytes, g.bytes);
  pthread_attr_destroy(&a);
  pthread_mutex_unlock(&hold);
  end(t);
  take_back(&g);
}

/* Waits of all kinds leave the stack where it is. */
static sem_t turn;
static void* wait_often(void* argument) {
  struct given* const g = argument;
  volatile char here[2000];
  int i;
  memset((void*)here, 7, sizeof here);
  for (i = 0; i < 50; ++i) {
    const struct timespec little = {0, 1000};
    sem_wait(&turn);
    sched_yield();
    sem_post(&turn);
    if (i % 25 == 0) nanosleep(&little, NULL);
  }
  for (i = 0; i < (int)sizeof here; ++i) {
    if (here[i] != 7) break;
  }
  SAME(i, sizeof here);
  CHECK(lies_in(g, here));
  return NULL;
}
CASE(threads_with_given_stacks_wait_and_end_over_and_over) {
  enum { THREADS = 20, ROUNDS = 5 };
  int round, i;
  sem_init(&turn, 0, 1);
  for (round = 0; round < ROUNDS; ++round) {
    struct given g[THREADS];
    pthread_t t[THREADS];
    for (i = 0; i < THREADS; ++i) {
      g[i] = give(i % 2 == 0 ? STACK_BYTES : SMALLEST_BYTES * 4);
      t[i] = begin_on(&g[i], &wait_often, &g[i]);
    }
    for (i = 0; i < THREADS; ++i) {
      end(t[i]);
      take_back(&g[i]); /* at once: nobody may be there any more */
    }
  }
  sem_destroy(&turn);
}

static pthread_key_t key;
static struct given* whose;
static int destroyed_there;
static void look_at_value(void* value) {
  volatile char here = 1;
  CHECK(value != NULL);
  destroyed_there += lies_in(whose, &here);
}
static void look_at_cleanup(void* argument) {
  volatile char here = 1;
  *(int*)argument += lies_in(whose, &here);
}
static void* leave_by_exit(void* handlers) {
  pthread_setspecific(key, handlers);
  pthread_cleanup_push(&look_at_cleanup, handlers);
  pthread_exit(handlers);
  pthread_cleanup_pop(0);
  return NULL;
}
static void* leave_by_cancellation(void* handlers) {
  pthread_setspecific(key, handlers);
  pthread_cleanup_push(&look_at_cleanup, handlers);
  for (;;) pause();
  pthread_cleanup_pop(0);
  return NULL;
}
CASE(handlers_and_values_end_on_the_given_stack) {
  struct given g = give(STACK_BYTES);
  int handlers = 0;
  pthread_t t;
  whose = &g;
  SAME(pthread_key_create(&key, &look_at_value), 0);
  CHECK(end(begin_on(&g, &leave_by_exit, &handlers)) == &handlers);
  SAME(handlers, 1);
  SAME(destroyed_there, 1);
  t = begin_on(&g, &leave_by_cancellation, &handlers);
  SAME(pthread_cancel(t), 0);
  CHECK(end(t) == PTHREAD_CANCELED);
  CHECK(handlers == 2 || handlers == 1); /* cancelled before it began */
  SAME(pthread_key_delete(key), 0);
  take_back(&g);
}

static void* nothing(void* a) { return a; }
CASE(the_smallest_stack_is_enough_to_begin_and_end) {
  struct given g = give(SMALLEST_BYTES);
  SAME(pthread_attr_setstack(&g.attributes, g.memory, SMALLEST_BYTES - 1), EINVAL);
  CHECK(end(begin_on(&g, &nothing, &g)) == &g);
  take_back(&g);
}

static void* fork_there(void* argument) {
  struct given* const g = argument;
  volatile char here = 1;
  const pid_t child = fork();
  int status = -1;
  if (child == 0) {
    if (!lies_in(g, &here)) _exit(1);
    return NULL; /* the only thread: the process ends, with 0 */
  }
  CHECK(child > 0);
  SAME(waitpid(child, &status, 0), child);
  SAME(status, 0);
  return NULL;
}
CASE(the_child_of_a_fork_goes_on_there) {
  struct given g = give(STACK_BYTES);
  end(begin_on(&g, &fork_there, &g));
  take_back(&g);
}

/* The sanitizers have their own idea of signal stacks. */
#ifndef STRATA_TEST_SANITIZED
static stack_t signal_stack, signal_stack_before;
static unsigned left_in_order;
static void note_left(void* which) { left_in_order = left_in_order * 10 + (unsigned)(size_t)which; }
static void put_signal_stack_back(void* a) {
  (void)a;
  SAME(sigaltstack(&signal_stack_before, NULL), 0);
}
static void leave_from_there(int n) {
  (void)n;
  pthread_cleanup_push(note_left, (void*)1);
  pthread_exit(&left_in_order);
  pthread_cleanup_pop(0);
}
static void* be_left_by_a_handler(void* a) {
  pthread_cleanup_push(note_left, (void*)3);
  SAME(sigaltstack(&signal_stack, &signal_stack_before), 0);
  pthread_cleanup_push(put_signal_stack_back, NULL);
  pthread_cleanup_push(note_left, (void*)2);
  raise(SIGUSR1);
  CHECK(!"reached");
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  return a;
}
/* Wherever the two stacks lie. */
CASE(an_exit_from_a_signal_stack_runs_all_cleanup_handlers) {
  struct given both = give(2 * STACK_BYTES);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = leave_from_there;
  action.sa_flags = SA_ONSTACK;
  SAME(sigaction(SIGUSR1, &action, NULL), 0);
  for (int above = 0; above < 2; ++above) {
    char* const own = both.memory + (above ? 0 : STACK_BYTES);
    memset(&signal_stack, 0, sizeof signal_stack);
    signal_stack.ss_sp = both.memory + (above ? STACK_BYTES : 0);
    signal_stack.ss_size = STACK_BYTES;
    SAME(pthread_attr_setstack(&both.attributes, own, STACK_BYTES), 0);
    left_in_order = 0;
    CHECK(end(begin_on(&both, be_left_by_a_handler, NULL)) == &left_in_order);
    SAME(left_in_order, 123);
  }
  signal(SIGUSR1, SIG_DFL);
  take_back(&both);
}
#endif
