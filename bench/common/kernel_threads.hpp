// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sched.h>

#include <cstddef>

#include "bench/common/measure.hpp"

namespace bench {

// Kernel threads have no workers: the process stays on the first so many of its processors, or on
// all if they are fewer. Returns their number.
inline unsigned keep_on_processors(unsigned number) {
  cpu_set_t allowed;
  cpu_set_t kept;
  CPU_ZERO(&kept);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) arguments::refuse("sched_getaffinity");
  unsigned count = 0;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE && count < number; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &kept);
    ++count;
  }
  if (sched_setaffinity(0, sizeof kept, &kept) != 0) arguments::refuse("sched_setaffinity");
  return count;
}

// With stacks of 8 MiB glibc re-uses only five of them, and making a thread takes longer.
inline void use_small_stacks() {
  constexpr std::size_t bytes = 64 * 1024;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, bytes) != 0 ||
      pthread_setattr_default_np(&attributes) != 0) {
    arguments::refuse("threads get no stacks of 64 KiB");
  }
}

}  // namespace bench
