// SPDX-License-Identifier: Apache-2.0
#include "strata/fiber_sync.hpp"

#include <exception>

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

// To the first who can be signalled.
void fiber_semaphore::release() {
  std::exception_ptr first;
  for (bool is_given = false; !is_given;) {
    slot_ptr next;
    {
      const detail::uninterrupted guard;
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) {
        ++permits_;
        break;
      }
      detail::check_inside(detail::this_worker());  // or nobody could be
      next = waiting_.front();
      waiting_.pop_front();
    }
    try {
      sync(next);
      is_given = true;
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace strata
