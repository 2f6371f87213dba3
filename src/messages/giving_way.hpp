// SPDX-License-Identifier: Apache-2.0
// Who copies a large message keeps its worker for as long as that takes: a gigabyte for tenths of a
// second; who sends while others wait for the same room, for as long as there is some (turns.hpp).
#pragma once
#include <cstddef>

#include "strata/detail/join.hpp"
#include "strata/detail/thread_core.hpp"
#include "strata/detail/worker.hpp"

namespace strata::messages {

// Between two turns of others. No handler copies so much, since others wait for handlers.
inline constexpr std::size_t copied_at_once = std::size_t{1} << 20;

// By who holds no lock: others that are ready on its worker come first. From outside the workers
// nobody waits for the caller's core.
inline void give_way_to_others() {
  if (strata::detail::this_worker().owner != nullptr && !strata::detail::nothing_else_is_ready())
    this_thread::yield();
}

}  // namespace strata::messages
