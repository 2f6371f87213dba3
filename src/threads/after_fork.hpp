// SPDX-License-Identifier: Apache-2.0
// In the child of a fork only the calling OS thread is left. What the others have held or waited
// for in here is forgotten. Called by that thread, before it waits for anything.
#pragma once

namespace strata::detail {

// Nobody waits anywhere.
void forget_parked() noexcept;
// Nor for a descriptor, or for a turn at one.
void forget_descriptor_waits();
// There are no threads for blocking calls.
void forget_blocking_threads();
// By an OS thread of ours that finds itself in the child, where something of the program's has
// forked on it and has returned: who goes on from there is a thread that is not here.
[[noreturn]] void end_child_without_thread() noexcept;
// Nobody answers the signal of options::dump_signal: it means what it meant before, until another
// runtime is started.
void forget_dump_signal();

// From before the fork until behind it, in both processes: nobody changes who holds which lock, as
// options::detect_deadlock has it recorded.
void hold_lock_graph();
void release_lock_graph() noexcept;

}  // namespace strata::detail
