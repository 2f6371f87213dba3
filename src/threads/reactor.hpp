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

// The numbers of these waits are not the program's (os/own_numbers.hpp), which wants one for
// itself: the set, or a copy of the reactor's, has another one from now on. False: neither has it,
// or there is no room.
bool move_descriptor_waits(int fd) noexcept;
// Who waits for `fd` waits for `fresh`, the same file, before it is somebody else's.
void watch_by_other_number(int fd, int fresh) noexcept;

}  // namespace strata::detail
