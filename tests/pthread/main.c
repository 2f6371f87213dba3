/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>

#include "check.h"

struct test_case* all_cases = NULL;
struct test_case* case_after_main = NULL;
pthread_t thread_of_main;
int failures = 0;

void check_(int holds, const char* text, const char* where, const char* file, int line) {
  if (holds) return;
  ++failures;
  printf("not ok  %s: %s is false (%s:%d)\n", where, text, file, line);
}

void same_(long got, long wanted, const char* text, const char* where, const char* file, int line) {
  if (got == wanted) return;
  ++failures;
  printf("not ok  %s: %s is %ld, not %ld (%s:%d)\n", where, text, got, wanted, file, line);
}

static const char* why_skipped;
void skip(const char* why) { why_skipped = why; }

struct timespec from_now(clockid_t clock, long ms) {
  struct timespec t;
  clock_gettime(clock, &t);
  t.tv_sec += ms / 1000;
  t.tv_nsec += ms % 1000 * 1000000;
  if (t.tv_nsec >= 1000000000) {
    t.tv_nsec -= 1000000000;
    ++t.tv_sec;
  }
  if (t.tv_nsec < 0) {
    t.tv_nsec += 1000000000;
    --t.tv_sec;
  }
  return t;
}

int on_strata(void) { return (int)(pthread_self() >> 63); }

pthread_t begin(void* (*start)(void*), void* argument) {
  pthread_t t;
  SAME(pthread_create(&t, NULL, start, argument), 0);
  return t;
}

void* end(pthread_t thread) {
  void* result = NULL;
  SAME(pthread_join(thread, &result), 0);
  return result;
}

void await(atomic_int* flag, int wanted) {
  while (atomic_load(flag) != wanted) sched_yield();
}

/* A leak check of the child would have to know of threads that are no more, which LeakSanitizer
 * asks here. */
static int is_child;
int __lsan_is_turned_off(void) { return is_child; }
void begin_child(void) {
  alarm(child_limit_s);
  failures = 0;
  is_child = 1;
}
void reap(pid_t child) {
  int status = -1;
  CHECK(child > 0);
  CHECK(waitpid(child, &status, 0) == child);
  SAME(status, 0);
}

/* The program's argument: the one case to run, or -CASE: all but that. */
static const char* wanted = NULL;
static int cases_run = 0;

static int is_wanted(const struct test_case* c) {
  if (c == NULL || wanted == NULL) return c != NULL;
  return wanted[0] == '-' ? strcmp(wanted + 1, c->name) != 0 : strcmp(wanted, c->name) == 0;
}
static void run_if_wanted(const struct test_case* c) {
  if (!is_wanted(c)) return;
  const int before = failures;
  why_skipped = NULL;
  c->run();
  ++cases_run;
  if (failures != before) return;
  if (why_skipped != NULL)
    printf("skipped %s: %s\n", c->name, why_skipped);
  else
    printf("ok      %s\n", c->name);
}
static int status_of_all(void) {
  printf("%d cases, %d failures\n", cases_run, failures);
  return failures != 0 || cases_run == 0;
}
static void* end_without_main(void* a) {
  (void)a;
  run_if_wanted(case_after_main);
  exit(status_of_all());
}

int main(int argc, char** argv) {
  if (argc > 1) wanted = argv[1];
  alarm(limit_s);
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (struct test_case* c = all_cases; c != NULL; c = c->next) run_if_wanted(c);
  if (!is_wanted(case_after_main)) return status_of_all();
  thread_of_main = pthread_self();
  SAME(pthread_detach(thread_of_main), 0);
  begin(end_without_main, NULL);
  pthread_exit(NULL);
}
