// SPDX-License-Identifier: Apache-2.0
#include "os/pages.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>

#include "base/errno_error.hpp"
#include "strata/detail/check.hpp"

namespace strata::os {

namespace {

// Linux 6.13: guards live in the page table, so they split no mapping and a process may have
// millions of guarded stacks instead of vm.max_map_count / 2 = 32,765. Debian 12's headers do not
// know it yet; an older kernel answers EINVAL.
constexpr int madv_guard_install = 102;
// Linux 5.14.
constexpr int madv_populate_write = 23;
// "This process", where a descriptor of a process is wanted: Linux 6.15 (pidfd_open(2),
// PIDFD_SELF). A descriptor would mean the parent after a fork. On oneself process_madvise(2) gives
// any advice since 6.13.
constexpr int pidfd_self = -10000;

std::size_t mappings_max() {
  static const std::size_t most = [] {
    std::size_t n = 65'530;
    std::ifstream("/proc/sys/vm/max_map_count") >> n;
    return n;
  }();
  return most;
}

// Emulators of programs (qemu-user) say of any advice that it is followed, also where they know
// nothing of it: there would be no guard.
bool advice_is_followed() noexcept {
  constexpr int nonsense = -1;
  static const bool is = madvise(nullptr, 0, nonsense) != 0;
  return is;
}

// Guards of this process that have split a mapping in three.
constinit std::atomic<std::size_t> splits{0};

}  // namespace

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t round_up_to_pages(std::size_t bytes) noexcept {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

std::byte* take_pages(std::size_t bytes) noexcept {
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start != MAP_FAILED ? static_cast<std::byte*>(start) : nullptr;
}

void give_pages(std::byte* at, std::size_t bytes) noexcept { munmap(at, bytes); }

void forget_pages(std::byte* at, std::size_t bytes) noexcept {
  // It can fail only for locked pages, which then simply stay.
  madvise(at, bytes, MADV_DONTNEED);
}

void use_small_pages(std::byte* at, std::size_t bytes) noexcept {
  madvise(at, bytes, MADV_NOHUGEPAGE);  // it fails where there are no large ones
}

page_range::page_range(std::size_t bytes) : bytes_(round_up_to_pages(bytes)) {
  STRATA_CHECK(bytes_ >= bytes && bytes > 0, bytes);
  data_ = take_pages(bytes_);
  if (data_ == nullptr) {
    throw errno_error("cannot reserve " + std::to_string(bytes_) + " bytes of address space",
                      errno);
  }
}

page_range::~page_range() {
  if (data_ == nullptr) return;
  give_pages(data_, bytes_);
  if (splits_ != 0) splits.fetch_sub(splits_, std::memory_order_relaxed);
}

bool populate(std::byte* at, std::size_t bytes) noexcept {
  const std::size_t page = page_bytes();
  const auto first = (reinterpret_cast<std::uintptr_t>(at) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(at) + bytes) / page * page;
  return first >= end ||
         madvise(reinterpret_cast<void*>(first), end - first, madv_populate_write) == 0;
}

void page_range::guard(std::size_t offset, std::size_t bytes) {
  STRATA_CHECK(offset <= bytes_ && bytes <= bytes_ - offset, offset, bytes, bytes_);
  STRATA_CHECK(offset % page_bytes() == 0 && bytes % page_bytes() == 0, offset, bytes);
  if (advice_is_followed() && madvise(data_ + offset, bytes, madv_guard_install) == 0) return;
  // The last quarter of what the system allows is left to the program, whose malloc() needs
  // mappings, too.
  if (2 * splits.load(std::memory_order_relaxed) > mappings_max() / 4 * 3)
    throw errno_error("no room for more guard pages (raise sysctl vm.max_map_count)", ENOMEM);
  if (mprotect(data_ + offset, bytes, PROT_NONE) != 0) {
    const int code = errno;
    throw errno_error(
        "cannot protect a guard page" +
            std::string(code == ENOMEM ? " (too many mappings: raise sysctl vm.max_map_count)"
                                       : ""),
        code);
  }
  splits.fetch_add(1, std::memory_order_relaxed);
  ++splits_;
}

std::size_t page_range::advise_all(const parts& some, advice what) noexcept {
  STRATA_CHECK(some.count > 0 && some.bytes > 0, some.count, some.bytes);
  STRATA_CHECK(some.bytes <= some.stride && some.stride <= bytes_, some.bytes, some.stride, bytes_);
  STRATA_CHECK(some.offset <= bytes_ && some.bytes <= bytes_ - some.offset, some.offset,
               some.bytes);
  STRATA_CHECK(some.count - 1 <= (bytes_ - some.offset - some.bytes) / some.stride, some.count);
  STRATA_CHECK((some.offset | some.stride | some.bytes) % page_bytes() == 0, some.offset,
               some.stride, some.bytes);
  std::size_t done = 0;
#if defined(SYS_process_madvise)
  // 2 KiB of a stack that may be small.
  std::array<iovec, 128> vectors;
  while (done < some.count) {
    const std::size_t n = std::min(vectors.size(), some.count - done);
    for (std::size_t i = 0; i < n; ++i)
      vectors[i] = {data_ + some.offset + (done + i) * some.stride, some.bytes};
    const long bytes =
        syscall(SYS_process_madvise, pidfd_self, vectors.data(), n,
                what == advice::guard ? madv_guard_install : madv_populate_write, 0U);
    if (bytes > 0) done += static_cast<std::size_t>(bytes) / some.bytes;
    if (bytes != static_cast<long>(n * some.bytes)) break;
  }
#else
  static_cast<void>(what);
#endif
  return done;
}

bool page_range::residency(std::size_t offset, std::size_t bytes,
                           unsigned char* there) const noexcept {
  STRATA_CHECK(offset <= bytes_ && bytes <= bytes_ - offset, offset, bytes, bytes_);
  if (mincore(data_ + offset, bytes, there) != 0) return false;
  // The other bits are reserved.
  for (std::size_t i = 0; i < bytes / page_bytes(); ++i) there[i] &= 1U;
  return true;
}

void page_range::decommit(std::size_t offset, std::size_t bytes) noexcept {
  STRATA_CHECK(offset <= bytes_ && bytes <= bytes_ - offset, offset, bytes, bytes_);
  STRATA_CHECK(offset % page_bytes() == 0 && bytes % page_bytes() == 0, offset, bytes);
  forget_pages(data_ + offset, bytes);
}

}  // namespace strata::os
