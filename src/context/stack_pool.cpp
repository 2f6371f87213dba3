// SPDX-License-Identifier: Apache-2.0
#include "context/stack_pool.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "context/switch.hpp"
#include "strata/detail/cpu.hpp"
#include "strata/error.hpp"

#if defined(STRATA_ASAN)
#include <sanitizer/asan_interface.h>
#endif
#if defined(STRATA_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace strata::detail {
namespace {

// What a fork leaves for the calls below it: functions of the program and of the C library that do
// not fork. Throwing alone takes some 6 KiB: the unwinder, and the dynamic linker's first look at
// it, which saves all vector registers.
std::size_t reserve_for_calls(std::size_t stack_bytes) {
  return std::max<std::size_t>(stack_bytes / 4, 8 * 1024);
}

// The address space for all stacks. It costs nothing until touched, but limits (ulimit -v, strict
// overcommit) can refuse it.
os::page_range reserve(std::size_t stride_bytes) {
  for (std::size_t bytes = std::size_t{64} << 30; bytes > (std::size_t{64} << 20); bytes /= 2) {
    try {
      return os::page_range(bytes / stride_bytes * stride_bytes);
    } catch (const error&) {
      // Half of it may still be enough.
    }
  }
  return os::page_range((std::size_t{64} << 20) / stride_bytes * stride_bytes + stride_bytes);
}

}  // namespace

stack_pool::stack_pool(std::size_t stack_bytes, void (*entry)(void*))
    : guard_bytes_(os::page_bytes()),
      stack_bytes_(os::round_up_to_pages(stack_bytes)),
      stride_bytes_(stack_bytes_ + guard_bytes_),
      entry_(entry),
      range_(reserve(stride_bytes_)) {}

stack_pool::~stack_pool() {
#if defined(STRATA_TSAN)
  for (std::size_t i = 0; i < cut_.load(); ++i) __tsan_destroy_fiber(header(i)->tsan_fiber);
#endif
}

stack* stack_pool::header(std::size_t i) const noexcept {
  std::byte* top = range_.data() + (i + 1) * stride_bytes_;
  constexpr std::size_t header_bytes = (sizeof(stack) + 63) / 64 * 64;
  return reinterpret_cast<stack*>(top - header_bytes);
}

stack* stack_pool::take() {
  const std::lock_guard lock(mutex_);
  if (stack* s = free_) {
    free_ = s->next_free;
    return s;
  }
  return cut();
}

void stack_pool::give(stack* s) noexcept {
  const std::lock_guard lock(mutex_);
  s->next_free = free_;
  free_ = s;
}

stack* stack_pool::cut() {
  const std::size_t i = cut_.load(std::memory_order_relaxed);
  const std::size_t offset = i * stride_bytes_;
  if (offset + stride_bytes_ > range_.size()) {
    throw error("out of stacks: " + std::to_string(i) + " stacks of " +
                std::to_string(stack_bytes_) +
                " bytes are in use; fork less deeply or use --strata-stack-bytes with less");
  }
  range_.guard(offset, guard_bytes_);
#if defined(STRATA_ASAN)
  // The stacks of an earlier runtime may have lain here, and frames that never return stay
  // poisoned.
  __asan_unpoison_memory_region(range_.data() + offset + guard_bytes_, stack_bytes_);
#endif
  stack* s = ::new (static_cast<void*>(header(i))) stack;
  std::byte* lowest = range_.data() + offset + guard_bytes_;
  s->pool = this;
  s->bottom = lowest;
  s->bytes = static_cast<std::size_t>(reinterpret_cast<std::byte*>(s) - lowest);
  s->limit = reinterpret_cast<std::uintptr_t>(lowest) + reserve_for_calls(s->bytes);
  s->sp = make_context(s, entry_, s);
#if defined(STRATA_TSAN)
  s->tsan_fiber = __tsan_create_fiber(0);
#endif
  cut_.store(i + 1, std::memory_order_release);
  return s;
}

const stack* stack_pool::guarding(const void* address) const noexcept {
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  const auto first = reinterpret_cast<std::uintptr_t>(range_.data());
  if (a < first || a >= first + range_.size()) return nullptr;
  const std::size_t i = (a - first) / stride_bytes_;
  if (i >= cut_.load(std::memory_order_acquire)) return nullptr;
  return (a - first) % stride_bytes_ < guard_bytes_ ? header(i) : nullptr;
}

}  // namespace strata::detail
