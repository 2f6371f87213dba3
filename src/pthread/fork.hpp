// SPDX-License-Identifier: Apache-2.0
// fork() leaves one OS thread. In the child it is nobody's worker: whatever thread ran on it goes
// on as a thread from outside, on the stack that it had, and the next pthread_create() starts a
// runtime anew.
#pragma once

namespace strata::detail::posix {

struct record;

// The child of a vfork(), which has our memory, and a kernel thread of its own.
[[nodiscard]] bool is_in_child_of_vfork() noexcept;

// The calling thread has what a fork wants held, and cannot be suspended: from our handler before
// the fork until the one behind it. Other handlers may come between, of what was there before us.
[[nodiscard]] bool is_in_fork() noexcept;

// The end of main(), by pthread_exit(), and of a thread that a fork has left alone: the process
// ends with status 0 after the last other thread. Null where it has no record.
[[noreturn]] void end_process_with(record* r);

}  // namespace strata::detail::posix
