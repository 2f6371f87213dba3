// SPDX-License-Identifier: Apache-2.0
#include "sched/outside_section.hpp"

namespace strata::detail {

thread_local constinit outside_state outside_here;

// Not where another one goes on: that one's end comes.
void outside_section::do_what_was_put_off() noexcept {
  if (is_here()) return;
  if (auto* const f = outside_here.at_end.exchange(nullptr, std::memory_order_relaxed)) f();
}

}  // namespace strata::detail
