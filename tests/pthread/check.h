/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of one list: each says in a line what failed. The same sources are built against the C
   library's threads, which proves that the expectations are right, and against ours. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct test_case {
  const char* name;
  void (*run)(void);
  struct test_case* next;
};
extern struct test_case* all_cases;
/* Run by another thread, when main() has detached its own and left it; null: none. */
extern struct test_case* case_after_main;
extern pthread_t thread_of_main;
extern int failures;

#define CASE(name)                                            \
  static void name(void);                                     \
  static struct test_case case_##name = {#name, name, NULL};  \
  __attribute__((constructor)) static void add_##name(void) { \
    case_##name.next = all_cases;                             \
    all_cases = &case_##name;                                 \
  }                                                           \
  static void name(void)
#define CASE_AFTER_MAIN(name)                                                                 \
  static void name(void);                                                                     \
  static struct test_case case_##name = {#name, name, NULL};                                  \
  __attribute__((constructor)) static void add_##name(void) { case_after_main = &case_##name; } \
  static void name(void)

#define CHECK(condition) check_((condition) ? 1 : 0, #condition, __func__, __FILE__, __LINE__)
/* Numbers that should be the same. */
#define SAME(a, b) same_((long)(a), (long)(b), #a, __func__, __FILE__, __LINE__)
void check_(int holds, const char* text, const char* where, const char* file, int line);
void same_(long got, long wanted, const char* text, const char* where, const char* file, int line);

/* The case that runs cannot be seen here, which is said instead of "ok". */
void skip(const char* why);

/* That many milliseconds from now. */
struct timespec from_now(clockid_t clock, long ms);
/* Whether these are our threads: some of what POSIX leaves open is otherwise with the C library's.
 */
int on_strata(void);
pthread_t begin(void* (*start)(void*), void* argument);
void* end(pthread_t thread);
/* What hangs ends by SIGALRM: before CTest's limit of 300 s, and a child of a fork before its parent.
 */
enum { limit_s = 280, child_limit_s = 120 };
/* Lets time pass for others until *flag is `wanted`. */
void await(atomic_int* flag, int wanted);
/* In the child of a fork: counts its own failures, and ends after child_limit_s at the latest. */
void begin_child(void);
/* Until it has ended, with status 0. */
void reap(pid_t child);
