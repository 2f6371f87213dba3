// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/ready_queue.hpp"

#include <sched.h>

#include "os/clock.hpp"

namespace strata::detail {

void ready_queue::wait_for_thief() noexcept {
  do {
    inside_.store(0, std::memory_order_release);
    // A thief is inside for well below a microsecond, unless it loses its core there.
    for (unsigned i = 0; wanted_.load(std::memory_order_acquire) != 0; ++i) {
      if (i < 1000) {
        os::spin_pause();
      } else {
        sched_yield();
      }
    }
    // A second thief may have come and gone since.
  } while (!announce());
}

bool ready_queue::owner_is_out() const noexcept {
  // Longer than a few instructions only if the owner has lost its core inside.
  for (unsigned i = 0; inside_.load(std::memory_order_acquire) != 0; ++i) {
    if (i == 1000) return false;
    os::spin_pause();
  }
  return true;
}

}  // namespace strata::detail
