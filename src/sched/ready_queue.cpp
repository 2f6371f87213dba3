// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/ready_queue.hpp"

#include <sched.h>

#include <algorithm>

#include "os/clock.hpp"
#include "os/pages.hpp"

namespace strata::detail {

bool ready_queue::grow() noexcept {
  const std::size_t n = size();
  const std::size_t h = head_.load(std::memory_order_relaxed);
  const std::size_t room = std::max(2 * (mask_ + 1), os::page_bytes() / sizeof(task*));
  auto** const bigger = reinterpret_cast<task**>(os::take_pages(room * sizeof(task*)));
  if (bigger == nullptr) return false;
  for (std::size_t i = 0; i < n; ++i) bigger[i] = ring_[(h + i) & mask_];
  give_ring();
  ring_ = bigger;
  mask_ = room - 1;
  head_.store(0, std::memory_order_relaxed);
  tail_.store(n, std::memory_order_relaxed);
  return true;
}

void ready_queue::give_ring() noexcept {
  if (ring_ == first_ring_.get()) return;
  os::give_pages(reinterpret_cast<std::byte*>(ring_), (mask_ + 1) * sizeof(task*));
}

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
