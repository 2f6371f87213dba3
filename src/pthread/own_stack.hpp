// SPDX-License-Identifier: Apache-2.0
// The stack that the calling thread began on, which it may leave for a signal stack or for one that
// the program has made for itself: what is deeper there than on another one addresses do not tell.
#pragma once
#include <cstdint>

#include "sched/place.hpp"
#include "strata/detail/worker.hpp"

namespace strata::detail::posix {

// False also for a thread from outside, whose stack is not known here.
inline bool is_on_own_stack(std::uintptr_t address) noexcept {
  const worker& w = this_worker();
  const stack* const s = w.owner != nullptr ? static_cast<const place&>(w).current : nullptr;
  if (s == nullptr) return false;
  const auto bottom = reinterpret_cast<std::uintptr_t>(s->bottom);
  return bottom <= address && address <= bottom + s->bytes;  // the outermost frame begins there
}

}  // namespace strata::detail::posix
