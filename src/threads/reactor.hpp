// SPDX-License-Identifier: Apache-2.0
// One OS thread of the process sleeps in epoll for all threads that wait for descriptors.
#pragma once
#include <cstdint>

#include "strata/detail/parking.hpp"

namespace strata::detail {

struct event_wait {
  int fd;
  short events;  // of poll(); it tells of errors and hang-ups unasked
  std::int64_t deadline_ns = parking::never;
  bool interruptible = false;
  // Afterwards.
  int error = 0;             // why fd cannot be waited for
  bool is_watchable = true;  // false: a regular file, of which nothing will be told
};

// Suspends the calling thread until one of the events may hold: who was told so looks again. Of
// what is always ready (a regular file) one is told at once. Answers, and throws, as park().
unparked wait_for_events(event_wait& how);

}  // namespace strata::detail
