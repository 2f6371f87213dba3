// SPDX-License-Identifier: Apache-2.0
#include "os/shared_page.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

#include "os/pages.hpp"

namespace strata::os {

bool may_be_shared(const void* address) noexcept {
  // 64 bits for each page (the kernel's Documentation/admin-guide/mm/pagemap.rst). Opened anew each
  // time: a program may close descriptors that it has not opened, and get their numbers again. Of
  // the thread, which has memory also when the one that the process began with has ended.
  constexpr std::uint64_t is_present = std::uint64_t{1} << 63;
  constexpr std::uint64_t is_in_swap = std::uint64_t{1} << 62;
  constexpr std::uint64_t is_of_file_or_shared = std::uint64_t{1} << 61;
  const int fd = ::open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  const auto page = reinterpret_cast<std::uintptr_t>(address) / page_bytes();
  std::uint64_t told = 0;
  const ssize_t n = ::pread(fd, &told, sizeof told, static_cast<off_t>(page * sizeof told));
  ::close(fd);
  return n != sizeof told || (told & (is_present | is_in_swap)) == 0 ||
         (told & is_of_file_or_shared) != 0;
}

}  // namespace strata::os
