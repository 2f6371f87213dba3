// SPDX-License-Identifier: Apache-2.0
// One of those who come calls the function, and the others wait until it has.
#include "strata/mutex.hpp"

namespace strata {

bool once_flag::in_progress(void* self) {
  return static_cast<once_flag*>(self)->state_.load(std::memory_order_relaxed) == running;
}

bool once_flag::begin() {
  for (;;) {
    std::uint32_t seen = nothing;
    if (state_.compare_exchange_strong(seen, running, std::memory_order_acquire)) return true;
    if (seen == done_) return false;
    detail::park({.what = "call_once", .address = this, .still = &in_progress, .argument = this});
  }
}

void once_flag::end(bool done) noexcept {
  state_.store(done ? done_ : nothing, std::memory_order_release);
  // One is enough to make the next call: it looks before it can leave, and whoever was quicker
  // wakes another in its turn.
  detail::unpark(this, done ? UINT32_MAX : 1);
}

}  // namespace strata
