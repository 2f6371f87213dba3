// SPDX-License-Identifier: Apache-2.0
// What ends a thread's wait from outside of it, in whichever order the two come.
#include <mutex>

#include "sched/outside_section.hpp"
#include "threads/thread_block.hpp"

namespace strata::detail {

unparked begin_wait(thread_block& b, waiter& w) noexcept {
  const std::lock_guard lock(b.extras->lock);
  if (b.extras->interrupted && w.heeds_interruption) return unparked::interrupted;
  if (b.extras->signalled.load(std::memory_order_relaxed)) return unparked::signalled;
  b.extras->parked = &w;
  return unparked::woken;
}

void end_wait(thread_block& b) noexcept {
  const outside_section here;
  const std::lock_guard lock(b.extras->lock);
  b.extras->parked = nullptr;
}

void forget_wait(waiter& w) noexcept {
  if (w.block == nullptr) return;
  const std::lock_guard lock(w.block->extras->lock);
  if (w.block->extras->parked == &w) w.block->extras->parked = nullptr;
}

void interrupt(thread_block& b) noexcept {
  const outside_section here;
  const uninterrupted guard;
  const std::lock_guard lock(b.extras->lock);
  b.extras->interrupted = true;
  waiter* const parked = b.extras->parked;
  if (parked != nullptr && parked->heeds_interruption) wake(*parked, unparked::interrupted);
}

}  // namespace strata::detail
