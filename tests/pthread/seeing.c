/* SPDX-License-Identifier: Apache-2.0 */
/* seeing dump: with the setting dump-signal=USR1, asks for dumps until one shows what it should, and prints "ok".
   seeing deadlock: two threads wait for each other, for ever unless somebody sees it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void named(pthread_t* thread, const char* name, const pthread_attr_t* attributes, void* (*start)(void*),
                  void* argument) {
  if (pthread_create(thread, attributes, start, argument) != 0 || pthread_setname_np(*thread, name) != 0) _exit(3);
}

static sem_t stop;
static void* wait_for_stop(void* a) {
  sem_wait(&stop);
  return a;
}
static int dump(void) {
  static char text[1 << 20];
  static _Alignas(4096) char memory[128 << 10];
  pthread_attr_t on_given_stack;
  size_t bytes = 0;
  int ends[2];
  pthread_t t;
  sem_init(&stop, 0, 0);
  if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) return 3;
  pthread_attr_init(&on_given_stack);
  if (pthread_attr_setstack(&on_given_stack, memory, sizeof memory) != 0) return 3;
  named(&t, "walter", &on_given_stack, wait_for_stop, NULL);
  pthread_attr_destroy(&on_given_stack);
  while (strstr(text, "\"walter\": waiting for semaphore at 0x") == NULL) {
    /* It may not have begun to wait. */
    sched_yield();
    kill(getpid(), SIGUSR1);
    const ssize_t n = read(ends[0], text + bytes, sizeof text - 1 - bytes);
    if (n <= 0) return 4;
    bytes += (size_t)n;
  }
  sem_post(&stop);
  pthread_join(t, NULL);
  puts("ok");
  return 0;
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold_one;
static void* lock_both(void* a) {
  const int own = *(const int*)a;
  pthread_mutex_lock(own == 0 ? &first : &second);
  pthread_barrier_wait(&both_hold_one);
  pthread_mutex_lock(own == 0 ? &second : &first);
  return NULL;
}
static int deadlock(void) {
  static const int numbers[2] = {0, 1};
  pthread_t t[3];
  pthread_barrier_init(&both_hold_one, NULL, 3);
  named(&t[0], "anna", NULL, lock_both, (void*)&numbers[0]);
  named(&t[1], "bert", NULL, lock_both, (void*)&numbers[1]);
  pthread_barrier_wait(&both_hold_one); /* both have their names */
  pthread_join(t[0], NULL);
  return 5;
}

int main(int argc, char** argv) {
  alarm(280); /* what hangs ends before CTest's limit of 300 s */
  if (argc == 2 && strcmp(argv[1], "dump") == 0) return dump();
  if (argc == 2 && strcmp(argv[1], "deadlock") == 0) return deadlock();
  return 2;
}
