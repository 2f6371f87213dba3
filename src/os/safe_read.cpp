// SPDX-License-Identifier: Apache-2.0
#include "os/safe_read.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace strata::os {
namespace {

// Where the system call is forbidden (some containers): write(2) checks what it reads, too.
bool through_a_pipe(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  bool good = true;
  while (good && bytes != 0) {
    constexpr std::size_t fits = 4096;  // in every pipe
    const long written = syscall(SYS_write, ends[1], from, std::min(bytes, fits));
    good =
        written > 0 && syscall(SYS_read, ends[0], to, static_cast<std::size_t>(written)) == written;
    if (!good) break;
    to += written;
    from += written;
    bytes -= static_cast<std::size_t>(written);
  }
  close(ends[0]);
  close(ends[1]);
  return good;
}

}  // namespace

bool safe_read(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  // Not the C library's functions, which sanitizers watch.
  const iovec here{to, bytes};
  const iovec there{const_cast<void*>(from), bytes};
  const long n = syscall(SYS_process_vm_readv, getpid(), &here, 1UL, &there, 1UL, 0UL);
  if (n == static_cast<long>(bytes)) return true;
  if (n < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES)) {
    return through_a_pipe(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  }
  return false;
}

std::string safe_text(const char* from, std::size_t length_max) {
  std::string text;
  std::array<char, 16> some;
  while (text.size() < length_max) {
    // Never into a page in which the text does not lie.
    const char* const at = from + text.size();
    const std::size_t bytes = some.size() - reinterpret_cast<std::uintptr_t>(at) % some.size();
    if (!safe_read(some.data(), at, bytes)) break;
    const char* const last = some.data() + bytes;
    const char* const end = std::find(some.data(), some.data() + bytes, '\0');
    text.append(some.data(), static_cast<std::size_t>(end - some.data()));
    if (end != last) break;
  }
  text.resize(std::min(text.size(), length_max));
  return text;
}

}  // namespace strata::os
