// SPDX-License-Identifier: Apache-2.0
#include "messages/vm_read.hpp"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace strata::messages {

process_mark own_mark() noexcept {
  static const std::uint64_t value = [] {
    std::uint64_t v = 0;
    while (::getrandom(&v, sizeof(v), 0) != sizeof(v)) {
    }
    return v;
  }();
  return {reinterpret_cast<std::uintptr_t>(&value), value};
}

std::uint32_t own_process() noexcept { return static_cast<std::uint32_t>(::getpid()); }

bool read_process(std::uint32_t process, const process_mark& mark, std::uint64_t from, void* into,
                  std::size_t bytes) noexcept {
  constexpr std::size_t bytes_at_once = std::size_t{1} << 30;
  auto* to = static_cast<std::byte*>(into);
  do {
    const std::size_t n = std::min(bytes, bytes_at_once);
    std::uint64_t seen = 0;
    const std::array<iovec, 2> here{iovec{&seen, sizeof(seen)}, iovec{to, n}};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses of another process
    const std::array<iovec, 2> there{iovec{reinterpret_cast<void*>(mark.address), sizeof(seen)},
                                     iovec{reinterpret_cast<void*>(from), n}};
    const ssize_t got =
        ::process_vm_readv(static_cast<pid_t>(process), here.data(), 2, there.data(), 2, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < static_cast<ssize_t>(sizeof(seen)) || seen != mark.value) return false;
    const std::size_t copied = static_cast<std::size_t>(got) - sizeof(seen);
    if (copied == 0 && n != 0) return false;
    to += copied;
    from += copied;
    bytes -= copied;
  } while (bytes != 0);
  return true;
}

}  // namespace strata::messages
