/* SPDX-License-Identifier: Apache-2.0 */
/* main() leaves a process whose last thread goes on, which then ends with status 0. The argument:
 *   early      pthread_self() has been called before all constructors, also those of libraries
 *   natively   main() has called nothing but pthread_create(), and leaves as the C library has it
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "c_librarys.h"

enum { limit_s = 240 };
static atomic_int main_leaves, has_run;
static volatile pthread_t known_early;

static int is(int argc, char** argv, const char* what) {
  return argc > 1 && strcmp(argv[1], what) == 0;
}
static void call_early(int argc, char** argv, char** environment) {
  (void)environment;
  if (is(argc, argv, "early")) known_early = pthread_self();
}
__attribute__((section(".preinit_array"), used)) static void (*const early)(int, char**,
                                                                            char**) = call_early;

static void tell(void* a) {
  (void)a;
  atomic_store(&main_leaves, 1);
}
static void* be_the_last(void* a) {
  while (!atomic_load(&main_leaves)) sched_yield();
  usleep(2000); /* in which one that waits for nobody would end: nothing else depends on it */
  atomic_store(&has_run, 1);
  return a;
}
static void look_at_exit(void) {
  if (!atomic_load(&has_run)) _exit(3);
}

int main(int argc, char** argv) {
  pthread_t last;
  pthread_attr_t detached;
  alarm(limit_s);
  atexit(look_at_exit);
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  if (pthread_create(&last, &detached, be_the_last, NULL) != 0) return 2;
  if (is(argc, argv, "natively")) {
    tell(NULL);
    C_LIBRARYS(pthread_exit)(NULL);
  }
  pthread_cleanup_push(tell, NULL);
  pthread_exit(NULL);
  pthread_cleanup_pop(0);
}
