// SPDX-License-Identifier: Apache-2.0
// Descriptors that the program has not asked for have high numbers: out of the way of one that
// counts on getting the lowest, or closes what it did not open from below.
#pragma once
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace strata::os {

/// From here on. At least three quarters of what the process may have open are left to it.
inline int first_own_number() noexcept {
  constexpr rlim_t high = 4096;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return high;
  return static_cast<int>(std::min(high, limit.rlim_cur / 4 * 3));
}

/// A copy of `fd` with such a number, which programs that are started do not have. -1, with errno,
/// where there is no room for one.
inline int copy_out_of_the_way(int fd) noexcept {
  return fcntl(fd, F_DUPFD_CLOEXEC, first_own_number());
}

/// `fd` with such a number in place of its own; where there is no room, fd as it is.
inline int move_out_of_the_way(int fd) noexcept {
  const int moved = copy_out_of_the_way(fd);
  if (moved < 0) return fd;
  close(fd);
  return moved;
}

}  // namespace strata::os
