// SPDX-License-Identifier: Apache-2.0
#include "os/own_numbers.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <bit>

namespace strata::os {
namespace {

constexpr std::uint64_t bit_of(std::size_t n) noexcept { return std::uint64_t{1} << n % 64; }

void note(int fd) noexcept {
  const auto n = static_cast<std::size_t>(fd);
  if (n >= own_numbers_max) return;
  int highest = highest_own_number.load(std::memory_order_relaxed);
  while (fd > highest && !highest_own_number.compare_exchange_weak(highest, fd)) {
  }
  own_numbers[n / 64].fetch_or(bit_of(n), std::memory_order_relaxed);
  int lowest = lowest_own_number.load(std::memory_order_relaxed);
  while (fd < lowest && !lowest_own_number.compare_exchange_weak(lowest, fd)) {
  }
}

}  // namespace

constinit std::atomic<int> lowest_own_number{highest_first_own_number};
constinit std::atomic<int> highest_own_number{-1};
constinit std::array<std::atomic<std::uint64_t>, own_numbers_max / 64> own_numbers{};

int copy_out_of_the_way(int fd, int lowest) noexcept {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
  if (copy >= 0) note(copy);
  return copy;
}

int move_out_of_the_way(int fd) noexcept {
  const int moved = copy_out_of_the_way(fd);
  if (moved < 0) {
    note(fd);
    return fd;
  }
  close(fd);
  return moved;
}

// Before it is closed: from then on the number may be the program's.
void close_own(int fd) noexcept {
  forget_own_number(fd);
  close(fd);
}

void forget_own_number(int fd) noexcept {
  const auto n = static_cast<std::size_t>(fd);
  if (n < own_numbers_max) own_numbers[n / 64].fetch_and(~bit_of(n), std::memory_order_relaxed);
}

void close_all_own() noexcept {
  for (int fd = next_own_number(0); fd >= 0; fd = next_own_number(static_cast<unsigned>(fd)))
    close_own(fd);
}

int next_own_number(unsigned lowest, unsigned last) noexcept {
  const int highest = highest_own_number.load(std::memory_order_relaxed);
  if (highest < 0) return -1;
  const std::size_t end = std::min<std::size_t>(last, static_cast<std::size_t>(highest));
  const int first = lowest_own_number.load(std::memory_order_relaxed);
  std::size_t n = std::max<std::size_t>(lowest, static_cast<std::size_t>(first));
  while (n <= end) {
    const std::uint64_t there = own_numbers[n / 64].load(std::memory_order_relaxed) >> n % 64;
    if (there != 0) {
      n += static_cast<std::size_t>(std::countr_zero(there));
      return n <= end ? static_cast<int>(n) : -1;
    }
    n = (n / 64 + 1) * 64;
  }
  return -1;
}

}  // namespace strata::os
