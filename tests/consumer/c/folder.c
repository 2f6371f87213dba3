/* SPDX-License-Identifier: Apache-2.0 */
/* A program that knows nothing of strata. Its thread must be one of ours all the same. */
#include <pthread.h>
#include <stdio.h>

static void* double_it(void* number) {
  *(int*)number *= 2;
  return pthread_self() >> 63 ? number : NULL;
}

int main(void) {
  pthread_t thread;
  int number = 21;
  void* result = NULL;
  if (pthread_create(&thread, NULL, double_it, &number) != 0) return 1;
  if (pthread_join(thread, &result) != 0 || result != &number) return 2;
  printf("%d\n", number);
  return number == 42 ? 0 : 3;
}
