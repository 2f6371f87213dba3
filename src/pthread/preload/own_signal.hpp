// SPDX-License-Identifier: Apache-2.0
// The signal by which the C library cancels kernel threads, for ourselves: nobody ever blocks it,
// programs cannot have it, and there are no kernel threads here that somebody cancels. From a timer
// it is a tick for a worker (ticks.hpp), whose calls of the kernel go on afterwards; sent by us it
// ends the call of a kernel thread that waits in a thread's place (elsewhere.hpp).
#pragma once
#include <cstdint>

namespace strata::preload {

// The calling OS thread gets a tick whenever it has computed for so long. False: the kernel has no
// timer for it.
bool begin_ticks_of_os_thread(std::int64_t interval_ns) noexcept;

// From now on calls can be ended. By anybody, as often as they like.
void begin_own_signal() noexcept;
// The call of the kernel that this OS thread of ours is in, or is about to begin, if it lets that
// be ended.
void end_call_of(int os_thread) noexcept;
// By that thread: whether the calls that it makes may be ended, all of them.
void let_calls_end(bool may) noexcept;
// How often it has been told so while they might, whichever call was meant.
[[nodiscard]] std::uint32_t endings_of_calls_here() noexcept;

}  // namespace strata::preload
