/* SPDX-License-Identifier: Apache-2.0
   Passes: pthread_join() waits for the end and brings what the thread has returned. */
#include <pthread.h>
#include <stdio.h>

#include "posixtest.h"

static void* twice(void* n) { return (char*)n + (size_t)n; }

int main(void) {
  pthread_t thread;
  void* result = NULL;
  if (pthread_create(&thread, NULL, twice, (void*)21) != 0) return PTS_UNRESOLVED;
  if (pthread_join(thread, &result) != 0 || result != (void*)42) {
    printf("Test FAILED\n");
    return PTS_FAIL;
  }
  printf("Test PASSED\n");
  return PTS_PASS;
}
