// SPDX-License-Identifier: Apache-2.0
// A library that is linked with libgomp, and comes by dlopen().
#include <time.h>

void compute_alone(void);

static double used_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void compute_alone(void) {
  volatile long counted = 0;
#pragma omp critical
  {
    for (const double until = used_s() + .05; used_s() < until;) {
      for (int i = 0; i < 1000000; ++i) counted += i;
    }
  }
}
