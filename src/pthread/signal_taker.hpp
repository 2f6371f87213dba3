// SPDX-License-Identifier: Apache-2.0
// Workers block all signals, so that handlers interrupt nothing of the runtime. What is sent to the
// process, and what no OS thread of the program can handle where it arrives, is the taker's, an OS
// thread that does nothing else. It gives each signal to a thread that has not blocked it, main()
// before others, and ends its wait; the thread runs the handler, on its own stack. One that does
// not come to it in time, because it computes or has to wait for its turn, is not waited for: the
// taker runs the handler itself, and the thread's wait ends all the same. Only not beside the same
// handler, which it interrupts, or comes after, in its own thread. What nobody takes now is held
// for the process (held_signals.hpp).
#pragma once
#include <signal.h>

#include <cstdint>

namespace strata::detail::posix {

struct record;

// r has unblocked `more`, and blocked `less` of what was counted for it: as long as somebody has
// unblocked a signal the taker waits for it. Returns when what was sent before is handled.
void count_opened(record& r, const sigset_t& more, const sigset_t& less);

// The taker is there from now on, unless the system has no thread for it.
void begin_signal_taker() noexcept;
// In a handler, on whatever OS thread: the taker sees to it, once for all that come of one
// signal before it does; of real-time signals it keeps 256. False: there is none.
[[nodiscard]] bool leave_to_taker(const siginfo_t& info) noexcept;
// What has been left to it is handled when it returns; not for ever, as a handler may wait for what
// the caller holds. By r, which runs those that are its own meanwhile.
void settle_signals(record& r);
// What has been left to it by now by the calling OS thread, and by those who have told of it.
[[nodiscard]] std::uint32_t left_by_now() noexcept;
// Whether something of that has not been passed on yet; then some time has passed, or something has
// been offered to a thread. What is left to it later is not waited for: it might never end.
[[nodiscard]] bool await_signal_taker(std::uint32_t left) noexcept;

// Masks of main() have changed, and it runs on without a call of ours that would look what is held
// for the process (held_signals.hpp); or the program may have thrown away what the taker was told
// by, which is a signal too.
void ring_signal_taker() noexcept;
// Of one that a handler has been called for: it was for the taker's sleep, and is nobody's.
[[nodiscard]] bool is_for_taker(const siginfo_t& info) noexcept;

// In the child of a fork, where its thread is not.
void forget_signal_taker() noexcept;

}  // namespace strata::detail::posix
