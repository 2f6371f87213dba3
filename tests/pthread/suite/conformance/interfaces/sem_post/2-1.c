/* SPDX-License-Identifier: Apache-2.0
   Unresolved: what it needs is not there. */
#include <semaphore.h>

#include "posixtest.h"

int main(void) {
  sem_t s;
  if (sem_init(&s, 0, 0) != 0 || sem_post(&s) != 0 || sem_wait(&s) != 0) return PTS_FAIL;
  return PTS_UNRESOLVED;
}
