/* SPDX-License-Identifier: Apache-2.0
   Ends by a signal. */
#include <signal.h>

int main(void) {
  raise(SIGKILL);
  return 0;
}
