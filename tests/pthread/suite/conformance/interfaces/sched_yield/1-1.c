/* SPDX-License-Identifier: Apache-2.0
   Unsupported. */
#include <sched.h>

#include "posixtest.h"

int main(void) { return sched_yield() == 0 ? PTS_UNSUPPORTED : PTS_FAIL; }
