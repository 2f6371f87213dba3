// SPDX-License-Identifier: Apache-2.0
#include "strata/fiber_sync.hpp"

namespace strata {

void fiber_semaphore::acquire(slot_ptr granted) {
  {
    const detail::uninterrupted guard;
    const std::lock_guard lock(mutex_);
    if (permits_ == 0) {
      waiting_.push_back(granted);
      return;
    }
    --permits_;
  }
  sync(granted);
}

bool fiber_semaphore::try_acquire() noexcept {
  const detail::uninterrupted guard;
  const std::lock_guard lock(mutex_);
  if (permits_ == 0) return false;
  --permits_;
  return true;
}

void fiber_semaphore::release() {
  slot_ptr next;
  {
    const detail::uninterrupted guard;
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      ++permits_;
      return;
    }
    next = waiting_.front();
    waiting_.pop_front();
  }
  sync(next);
}

}  // namespace strata
