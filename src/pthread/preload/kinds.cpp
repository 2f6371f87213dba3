// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/kinds.hpp"

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "threads/errno_here.hpp"

namespace strata::preload {
namespace {

// Of low numbers. Hints only, so nothing is ordered by them.
constexpr std::size_t numbers = 4096;
constinit std::array<std::atomic<bool>, numbers> socket_at{};

file_kind kind_of(int fd) noexcept {
  struct stat s;
  if (fstat(fd, &s) != 0) return file_kind::ready;
  switch (s.st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFBLK:
      return file_kind::ready;
    case S_IFSOCK:
      return file_kind::socket;
    case S_IFIFO:
      return file_kind::pipe;
    case S_IFCHR:
      return file_kind::device;
    default:
      return file_kind::nameless;
  }
}

}  // namespace

file_kind look_at(int fd) noexcept {
  const int error = detail::errno_here();
  const file_kind kind = kind_of(fd);
  detail::set_errno_here(error);
  if (static_cast<std::size_t>(fd) < numbers)
    socket_at[static_cast<std::size_t>(fd)].store(kind == file_kind::socket,
                                                  std::memory_order_relaxed);
  return kind;
}

bool was_socket(int fd) noexcept {
  return static_cast<std::size_t>(fd) < numbers &&
         socket_at[static_cast<std::size_t>(fd)].load(std::memory_order_relaxed);
}

}  // namespace strata::preload
