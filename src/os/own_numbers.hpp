// SPDX-License-Identifier: Apache-2.0
// Descriptors that the program has not asked for have high numbers: out of the way of one that
// counts on getting the lowest, or closes what it did not open from below. Which they are is known,
// so that one that closes all there are can be kept from closing them
// (pthread/preload/closing.hpp).
#pragma once
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace strata::os {

inline constexpr int highest_first_own_number = 4096;
/// From here on. At least three quarters of what the process may have open are left to it.
inline int first_own_number() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return highest_first_own_number;
  return static_cast<int>(std::min<rlim_t>(highest_first_own_number, limit.rlim_cur / 4 * 3));
}

/// A copy of `fd` with such a number, or one from `lowest` on, which programs that are started do
/// not have. -1, with errno, where there is no room for one.
int copy_out_of_the_way(int fd, int lowest = first_own_number()) noexcept;
/// `fd` with such a number in place of its own; where there is no room, fd as it is.
int move_out_of_the_way(int fd) noexcept;
/// Each of these is closed so.
void close_own(int fd) noexcept;
/// It is somebody else's by now, or closed.
void forget_own_number(int fd) noexcept;
/// All that there are. In the child of a fork, which has them from its parent.
void close_all_own() noexcept;

// Relaxed, all: a program that closes, at the same time, what another thread is about to open has
// no order to rely on. Of higher numbers nobody is told.
inline constexpr std::size_t own_numbers_max = std::size_t{1} << 20;
extern constinit std::atomic<int> lowest_own_number;   // that there ever was, or may be first
extern constinit std::atomic<int> highest_own_number;  // likewise; -1: none
extern constinit std::array<std::atomic<std::uint64_t>, own_numbers_max / 64> own_numbers;

/// Also in handlers, and in the child of a vfork().
inline bool is_own_number(int fd) noexcept {
  if (fd < lowest_own_number.load(std::memory_order_relaxed)) [[likely]]
    return false;
  const auto n = static_cast<std::size_t>(fd);
  return n < own_numbers_max &&
         (own_numbers[n / 64].load(std::memory_order_relaxed) >> n % 64 & 1) != 0;
}
/// The lowest from `lowest` to `last`; -1: none. As above. What lies beyond the highest that there
/// ever was is not looked at.
int next_own_number(unsigned lowest, unsigned last = ~0U) noexcept;

}  // namespace strata::os
