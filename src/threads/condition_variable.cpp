// SPDX-License-Identifier: Apache-2.0
#include "strata/condition_variable.hpp"

namespace strata::detail {

unparked condition_queue::wait(void (*unlock)(void*), void* lock, std::int64_t deadline_ns,
                               bool interruptible) {
  // Marked with the lock held, so whoever changes under it what we wait for sees the mark, and
  // finds us in the queue. Partner: notify().
  used_.store(true, std::memory_order_seq_cst);
  return park({.what = "condition variable",
               .address = this,
               .then = unlock,
               .argument = lock,
               .deadline_ns = deadline_ns,
               .interruptible = interruptible});
}

void condition_queue::notify(unsigned count) noexcept {
  if (!used_.load(std::memory_order_seq_cst)) return;
  // Nothing of ours may be touched once somebody is woken, who may end us.
  unpark(this, count);
}

}  // namespace strata::detail
