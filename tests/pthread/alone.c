/* SPDX-License-Identifier: Apache-2.0 */
#include "alone.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

void alone_yield_until(int (*done)(void)) {
  while (!done()) sched_yield();
}
void alone_usleep_until(int (*done)(void)) {
  while (!done()) usleep(1000);
}
void alone_nanosleep_until(int (*done)(void)) {
  const struct timespec a_little = {0, 1000000};
  while (!done()) nanosleep(&a_little, NULL);
}
int alone_block(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  return sigprocmask(SIG_BLOCK, &set, NULL);
}
int alone_raise(int number) { return raise(number); }
