// SPDX-License-Identifier: Apache-2.0
// The runtime of threads that were made outside any: one for the process, started by the first of
// them, never stopped.
#pragma once
#include <signal.h>

namespace strata::detail {
class scheduler;
}

namespace strata::detail::posix {

// Settings from STRATA_* variables; stacks as large as kernel threads have unless they say
// otherwise. Ends the process, with a message and status 2, when those are wrong.
scheduler& process_runtime();
// Null before it is started. Between the next two nobody starts it.
[[nodiscard]] scheduler* process_runtime_if_any() noexcept;
void hold_runtime_start();
void release_runtime_start() noexcept;
// In the child of a fork: its workers are no more, and the next thread starts another one.
void forget_process_runtime() noexcept;
// What the process had blocked when it was started, as threads have that say nothing else.
[[nodiscard]] const sigset_t& mask_at_start() noexcept;

// Where the calling thread's new threads go.
scheduler& runtime_for_new_thread();

}  // namespace strata::detail::posix
