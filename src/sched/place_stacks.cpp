// SPDX-License-Identifier: Apache-2.0
// Where a worker gets stacks from when it has none at hand. Apart from place.cpp, where each
// instruction counts.
#include <exception>
#include <system_error>

#include "sched/scheduler.hpp"

namespace strata::detail {

stack* place::stack_at_hand() noexcept {
  if (stack* const s = take_spare()) return s;
  stack* const s = owner->stacks.take_ready();
  if (s != nullptr) adopt(*s);
  return s;
}

stack* place::usual_stack() noexcept {
  if (stack* const s = take_spare()) return s;
  try {
    stack* const s = owner->stacks.take();
    adopt(*s);
    return s;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void place::require_spare() {
  if (has_spare()) return;
  stack* s = usual_stack();
  if (s == nullptr) s = owner->stack_of_a_sleeper();
  if (s == nullptr) {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                            owner->stacks.exhausted().what());
  }
  spare_.promise(*s);
}

void place::give_up_spare() noexcept {
  if (stack* const s = take_spare()) s->pool->give(s);
}

}  // namespace strata::detail
