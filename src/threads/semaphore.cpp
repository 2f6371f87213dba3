// SPDX-License-Identifier: Apache-2.0
#include "strata/semaphore.hpp"

#include <algorithm>

namespace strata {

namespace detail {

bool semaphore_core::must_wait(void* self) {
  auto& state = static_cast<semaphore_core*>(self)->state_;
  std::uint64_t s = state.load(std::memory_order_relaxed);
  while ((s & ~awaited) == 0) {
    if ((s & awaited) != 0 ||
        state.compare_exchange_weak(s, s | awaited, std::memory_order_relaxed))
      return true;
  }
  return false;
}

unparked semaphore_core::park_here(parking how) {
  how.still = &must_wait;
  how.argument = this;
  return park(how);
}

unparked semaphore_core::acquire_by(unparked (*wait_once)(const parking&),
                                    std::int64_t deadline_ns) {
  while (!try_acquire()) {
    const unparked how = wait_once({.what = "semaphore",
                                    .address = this,
                                    .still = &must_wait,
                                    .argument = this,
                                    .deadline_ns = deadline_ns});
    if (how == unparked::timed_out) return how;
  }
  return unparked::woken;
}

unparked semaphore_core::wait(std::int64_t deadline_ns) {
  while (!try_acquire()) {
    const parking how{.what = "semaphore", .address = this, .deadline_ns = deadline_ns};
    if (park_here(how) == unparked::timed_out) return unparked::timed_out;
  }
  return unparked::woken;
}

void semaphore_core::wake(const void* address, std::uint64_t n) noexcept {
  unpark(address, static_cast<unsigned>(std::min<std::uint64_t>(n, UINT32_MAX)));
}

}  // namespace detail

bool latch::is_up(void* self) { return !static_cast<const latch*>(self)->try_wait(); }

void latch::count_down(std::ptrdiff_t n) noexcept {
  // From here on by its address only: whoever finds it open may end it.
  const std::ptrdiff_t before = left_.fetch_sub(n, std::memory_order_acq_rel);
  detail::check_use(n >= 0 && n <= before, "latch", this, "is counted down below 0",
                    "count it down as often as it says when it is made");
  if (before == n) detail::unpark(this, UINT32_MAX);
}

void latch::wait() const {
  while (!try_wait()) {
    detail::park(
        {.what = "latch", .address = this, .still = &is_up, .argument = const_cast<latch*>(this)});
  }
}

}  // namespace strata
