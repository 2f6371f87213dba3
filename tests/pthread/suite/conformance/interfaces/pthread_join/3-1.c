/* SPDX-License-Identifier: Apache-2.0
   Fails with the C library and passes with our folder on the include path: the script has to tell of it. */
#include <pthread.h>

#include "posixtest.h"

int main(void) {
#if __has_include(<strata/pthread.h>)
  return PTS_PASS;
#else
  return PTS_FAIL;
#endif
}
