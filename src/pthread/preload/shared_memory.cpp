// SPDX-License-Identifier: Apache-2.0
// The C library's mmap(), mremap() and shmat(): we note what the program shares with other
// processes. To ask the kernel for each word that a thread waits for takes longer than the wait;
// most programs share nothing, and then nothing is asked.
#include "pthread/preload/shared_memory.hpp"

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "os/shared_page.hpp"
#include "pthread/preload/native.hpp"

namespace strata::preload {
namespace {

// Without locks: a handler may map memory. Ranges stay when they are unmapped; the kernel knows
// better. Who has an address from there has seen the range noted before.
struct address_range {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};  // 0: not written yet

  [[nodiscard]] bool holds(std::uintptr_t from, std::uintptr_t to) const noexcept {
    // In this order: before its end is written a range begins at 0. Partner: note().
    return to <= end.load(std::memory_order_acquire) &&
           begin.load(std::memory_order_relaxed) <= from;
  }
};
constexpr std::size_t ranges_max = 256;
constinit std::array<address_range, ranges_max> ranges;
constinit std::atomic<std::size_t> noted{0};  // more than there is room for: any memory may be

bool is_noted(std::uintptr_t from, std::uintptr_t to) noexcept {
  const std::size_t n = noted.load(std::memory_order_acquire);
  if (n > ranges_max) return true;
  return std::any_of(ranges.begin(), ranges.begin() + n,
                     [&](const address_range& r) { return r.holds(from, to); });
}

void note(long address, std::size_t bytes) noexcept {
  const auto from = static_cast<std::uintptr_t>(address);
  const std::uintptr_t to = from + bytes;
  if (is_noted(from, to)) return;
  const std::size_t mine = noted.fetch_add(1, std::memory_order_acq_rel);
  if (mine >= ranges_max) return;
  ranges[mine].begin.store(from, std::memory_order_relaxed);
  ranges[mine].end.store(to, std::memory_order_release);
}

constexpr long refused = -1;

}  // namespace

bool is_seen_by_others(const void* address) noexcept {
  if (noted.load(std::memory_order_acquire) == 0) return false;
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  return is_noted(a, a + 1) && os::may_be_shared(address);
}

long call_mapping(long number, const call_arguments& given) noexcept {
  const long answer = call_kernel(number, given);
  if (answer == refused) return answer;
  switch (number) {
    case SYS_mmap:
      // Also MAP_SHARED_VALIDATE.
      if ((given.d & MAP_SHARED) != 0) note(answer, static_cast<std::size_t>(given.b));
      break;
    case SYS_mremap: {
      const auto before = static_cast<std::uintptr_t>(given.a);
      if (is_noted(before, before + 1)) note(answer, static_cast<std::size_t>(given.c));
      break;
    }
    case SYS_shmat: {
      shmid_ds about{};
      const bool is_told = shmctl(static_cast<int>(given.a), IPC_STAT, &about) == 0;
      note(answer, is_told ? about.shm_segsz : std::size_t{1} << 40);
      break;
    }
    default:
      break;
  }
  return answer;
}

}  // namespace strata::preload

extern "C" {

[[gnu::visibility("default")]] void* forward_mmap(void* at, std::size_t bytes, int protection,
                                                  int flags, int fd, off_t offset) __asm__("mmap");
[[gnu::visibility("default")]] void* forward_mmap64(void* at, std::size_t bytes, int protection,
                                                    int flags, int fd,
                                                    off_t offset) __asm__("mmap64");
[[gnu::visibility("default")]] void* forward_mremap(void* at, std::size_t bytes_before,
                                                    std::size_t bytes, int flags,
                                                    ...) __asm__("mremap");
[[gnu::visibility("default")]] void* forward_shmat(int segment, const void* at,
                                                   int flags) __asm__("shmat");
}

namespace {

void* mapped(long number, const strata::preload::call_arguments& given) noexcept {
  return reinterpret_cast<void*>(strata::preload::call_mapping(number, given));
}
long number_of(const void* address) noexcept { return reinterpret_cast<long>(address); }

}  // namespace

void* forward_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  return mapped(SYS_mmap, {number_of(at), static_cast<long>(bytes), protection, flags, fd, offset});
}

void* forward_mmap64(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  return forward_mmap(at, bytes, protection, flags, fd, offset);
}

void* forward_mremap(void* at, std::size_t bytes_before, std::size_t bytes, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const void* const to = va_arg(more, void*);
  va_end(more);
  return mapped(SYS_mremap, {number_of(at), static_cast<long>(bytes_before),
                             static_cast<long>(bytes), flags, number_of(to), 0});
}

void* forward_shmat(int segment, const void* at, int flags) {
  return mapped(SYS_shmat, {segment, number_of(at), flags, 0, 0, 0});
}
