/* SPDX-License-Identifier: Apache-2.0 */
/* New code in C, with threads of both kinds. */
#include <stdio.h>
#include <strata/pthread.h>

static void* double_it(void* number) {
  *(int*)number *= 2;
  return strata_pthread_self() >> 63 ? number : NULL;
}
static void* of_the_kernel(void* a) { return pthread_self() >> 63 ? NULL : a; }

int main(void) {
  pthread_t thread, kernels;
  int number = 21;
  void* result = NULL;
  if (strata_pthread_create(&thread, NULL, double_it, &number) != 0) return 1;
  if (strata_pthread_join(thread, &result) != 0 || result != &number) return 2;
  if (pthread_create(&kernels, NULL, of_the_kernel, &number) != 0) return 3;
  if (pthread_join(kernels, &result) != 0 || result != &number) return 4;
  printf("%d\n", number);
  return number == 42 ? 0 : 5;
}
