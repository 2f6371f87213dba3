// SPDX-License-Identifier: Apache-2.0
// Parallel regions of OpenMP with more threads than workers, and one in a thread beside others.
// Status 0 if all is right.
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static long cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// So long that threads of one worker take turns.
static void compute(void) {
  const long end = cpu_ms() + 25;
  while (cpu_ms() < end) {
  }
}

static int processors(void) {
  cpu_set_t all;
  return sched_getaffinity(0, sizeof all, &all) == 0 ? CPU_COUNT(&all) : -1;
}

static int sum_in_region(int threads) {
  int sum = 0;
  int turns = 0;
#pragma omp parallel num_threads(threads)
  {
    compute();
#pragma omp barrier
#pragma omp for reduction(+ : sum) schedule(dynamic)
    for (int i = 0; i < 100; ++i) sum += i;
#pragma omp critical
    {
      compute();
      ++turns;
    }
  }
  return sum == 4950 && turns == threads;
}

static void* in_thread(void* threads) { return (void*)(long)sum_in_region(*(int*)threads); }

// Each thread of each region has the processors of the process, wherever it was made.
static int processors_of_process;
static int bound = 0;
static void* count_bound(void* a) {
#pragma omp parallel num_threads(2)
  {
    const int is_bound = processors() != processors_of_process;
#pragma omp atomic
    bound += is_bound;
    compute();
  }
  return a;
}
static int are_unbound(void) {
  enum { count = 4 };
  pthread_t all[count];
  processors_of_process = processors();
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&all[i], NULL, &count_bound, NULL) != 0) return 0;
  }
  for (int i = 0; i < count; ++i) pthread_join(all[i], NULL);
  return bound == 0;
}

// And has blocked what its maker has.
static int masks_that_differ = 0;
static void* count_masks(void* a) {
  sigset_t all;
  sigemptyset(&all);
  sigaddset(&all, SIGUSR1);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
#pragma omp parallel num_threads(3)
  {
    sigset_t own;
    pthread_sigmask(SIG_SETMASK, NULL, &own);
    int differs = 0;
    for (int number = 1; number < NSIG; ++number)
      differs += sigismember(&own, number) != (number == SIGUSR1);
#pragma omp atomic
    masks_that_differ += differs;
  }
  return a;
}
static int have_masks_of_their_makers(void) {
  pthread_t maker;
  if (pthread_create(&maker, NULL, &count_masks, NULL) != 0) return 0;
  pthread_join(maker, NULL);
  return masks_that_differ == 0;
}

int main(void) {
  omp_set_dynamic(0);
  int wrong = 0;
  for (int threads = 2; threads <= 6; threads += 2) {
    if (!sum_in_region(threads)) ++wrong;
    pthread_t other;
    void* right = NULL;
    if (pthread_create(&other, NULL, &in_thread, &threads) != 0) return 2;
    if (pthread_join(other, &right) != 0 || right == NULL) ++wrong;
  }
  if (!are_unbound()) ++wrong;
  if (!have_masks_of_their_makers()) ++wrong;
  if (wrong != 0) printf("FAILED: %d regions\n", wrong);
  return wrong != 0;
}
