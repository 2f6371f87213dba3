// SPDX-License-Identifier: Apache-2.0
#include "strata/semaphore.hpp"

#include <algorithm>

#include "strata/detail/join.hpp"

namespace strata {

namespace detail {

bool semaphore_core::mark_while_empty(std::uint64_t mark) noexcept {
  std::uint64_t s = state_.load(std::memory_order_relaxed);
  while ((s & ~marks) == 0) {
    if ((s & mark) == mark || state_.compare_exchange_weak(s, s | mark, std::memory_order_relaxed))
      return true;
  }
  return false;
}

bool semaphore_core::must_wait(void* self) {
  return static_cast<semaphore_core*>(self)->mark_while_empty(awaited);
}
bool semaphore_core::must_wait_again(void* self) {
  return static_cast<semaphore_core*>(self)->mark_while_empty(marks);
}

// It is valid: the caller is about to acquire it.
void semaphore_core::give_way() noexcept {
  state_.fetch_and(~hungry, std::memory_order_relaxed);
  yield_stack();
}

unparked semaphore_core::park_here(parking how, bool in_vain) {
  how.still = in_vain ? &must_wait_again : &must_wait;
  how.argument = this;
  return park(how);
}

unparked semaphore_core::acquire_by(unparked (*wait_once)(const parking&),
                                    std::int64_t deadline_ns) {
  let_hungry_first();
  bool in_vain = false;
  while (!try_acquire()) {
    const unparked how = wait_once({.what = "semaphore",
                                    .address = this,
                                    .still = in_vain ? &must_wait_again : &must_wait,
                                    .argument = this,
                                    .deadline_ns = deadline_ns});
    if (how == unparked::timed_out) return how;
    in_vain = true;
  }
  return unparked::woken;
}

unparked semaphore_core::wait(std::int64_t deadline_ns) {
  const parking how{.what = "semaphore", .address = this, .deadline_ns = deadline_ns};
  bool in_vain = false;
  while (!try_acquire()) {
    if (park_here(how, in_vain) == unparked::timed_out) return unparked::timed_out;
    in_vain = true;
  }
  return unparked::woken;
}

bool semaphore_core::try_release(std::uint64_t n, std::uint64_t most) noexcept {
  std::uint64_t s = state_.load(std::memory_order_relaxed);
  do {
    if (n > most || (s & ~marks) > most - n) return false;
    // As release_and_count().
  } while (!state_.compare_exchange_weak(s, s + n, std::memory_order_release,
                                         std::memory_order_relaxed));
  if ((s & awaited) != 0) wake(this, n);
  return true;
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
