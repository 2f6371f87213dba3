// SPDX-License-Identifier: Apache-2.0
#include "messages/process_memory.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace strata::messages {

namespace {

std::uint64_t random_word() noexcept {
  std::uint64_t v = 0;
  while (::getrandom(&v, sizeof(v), 0) != sizeof(v)) {
  }
  return v;
}

}  // namespace

process_mark own_mark() noexcept {
  static const std::uint64_t value = random_word();
  return {reinterpret_cast<std::uintptr_t>(&value), value};
}

revocable_mark::revocable_mark() noexcept : value_(random_word()), there_(value_) {}

std::uint32_t own_process() noexcept { return static_cast<std::uint32_t>(::getpid()); }

// The kernel reads in the order of the list. So the mark that comes last says of all bytes whose
// they are, and that they were read before it was revoked.
bool read_process(std::uint32_t process, const process_mark& mark, std::uint64_t from, void* into,
                  std::size_t bytes) noexcept {
  constexpr std::size_t bytes_at_once = std::size_t{1} << 30;
  auto* to = static_cast<std::byte*>(into);
  for (;;) {
    const std::size_t n = std::min(bytes, bytes_at_once);
    std::uint64_t seen = 0;
    const std::array<iovec, 2> here{iovec{to, n}, iovec{&seen, sizeof(seen)}};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses of another process
    const std::array<iovec, 2> there{iovec{reinterpret_cast<void*>(from), n},
                                     iovec{reinterpret_cast<void*>(mark.address), sizeof(seen)}};
    const ssize_t got =
        ::process_vm_readv(static_cast<pid_t>(process), here.data(), 2, there.data(), 2, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    const auto read = static_cast<std::size_t>(got);
    if (read == n + sizeof(seen)) {
      if (seen != mark.value) return false;
      if (bytes == n) return true;
    } else if (read == 0 || read >= n) {
      return false;
    }
    const std::size_t copied = std::min(read, n);
    to += copied;
    from += copied;
    bytes -= copied;
  }
}

bool is_there(std::uint32_t process, const process_mark& mark) noexcept {
  // What is read is the mark itself, which may be either.
  std::uint64_t seen = 0;
  return read_process(process, mark, mark.address, &seen, sizeof(seen)) ||
         read_process(process, {mark.address, ~mark.value}, mark.address, &seen, sizeof(seen));
}

namespace {

// A page of its own. Null: there is no memory, and nobody writes here.
void* door() noexcept {
  static void* const page = [] {
    void* const p = ::mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
  }();
  return page;
}

}  // namespace

std::uint64_t own_door() noexcept { return reinterpret_cast<std::uintptr_t>(door()); }

void close_door() noexcept {
  if (door() != nullptr) (void)::mprotect(door(), 1, PROT_NONE);
}

// The kernel writes in the order of the list, and nothing behind what it cannot write: a closed
// door keeps it out.
bool write_process(std::uint32_t process, const process_mark& mark, std::uint64_t door,
                   std::uint64_t to, const void* from, std::size_t bytes) noexcept {
  if (!is_there(process, mark)) return false;
  const auto* next = static_cast<const std::byte*>(from);
  while (bytes != 0) {
    std::byte knock{};
    const std::array<iovec, 2> here{iovec{&knock, 1},
                                    iovec{const_cast<std::byte*>(next), bytes}};  // only read
    // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses of another process
    const std::array<iovec, 2> there{iovec{reinterpret_cast<void*>(door), 1},
                                     iovec{reinterpret_cast<void*>(to), bytes}};
    const ssize_t put =
        ::process_vm_writev(static_cast<pid_t>(process), here.data(), 2, there.data(), 2, 0);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 1) return false;
    const std::size_t copied = static_cast<std::size_t>(put) - 1;
    next += copied;
    to += copied;
    bytes -= copied;
  }
  return true;
}

}  // namespace strata::messages
