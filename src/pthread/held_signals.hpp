// SPDX-License-Identifier: Apache-2.0
// Signals of the process that the taker (signal_taker.hpp) has, and that no thread takes now: all
// have blocked them, or run a handler that does. They are pending for the process. Who stops
// blocking one, or waits for one, takes it.
#pragma once
#include <signal.h>

#include <cstdint>

namespace strata::detail::posix {

// By the taker, which afterwards looks, with each record's lock, who would take it. Whoever changes
// a mask or begins to wait does so with the record's lock and then asks here. So one of the two
// sees the other, whichever has the lock first.
void hold_signal(const siginfo_t& info) noexcept;
// Those that are held, as bits.
[[nodiscard]] std::uint64_t held_signals() noexcept;
// The lowest number of those in `set`; 0: none. Also with a record's lock.
int take_held(const sigset_t& set, siginfo_t& info) noexcept;
// In the child of a fork, which has none.
void forget_held_signals() noexcept;

}  // namespace strata::detail::posix
