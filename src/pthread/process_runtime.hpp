// SPDX-License-Identifier: Apache-2.0
// The runtimes of threads that were made outside any: one for pthreads and one for those of
// strata/thread.hpp, each started by the first of them, never stopped. They are two for the sake of
// signals. Handlers of pthreads' programs may post semaphores, so they must not interrupt the
// runtime: its workers block all signals, and src/pthread stands between them and the threads'
// masks. (Those of a main() without a worker put off what they must not do: put_off.hpp.) Threads
// of strata/thread.hpp have the mask of their worker, for themselves and for the programs that they
// start, so those workers have the one that the process has, as in run().
#pragma once
#include <signal.h>

namespace strata::detail {
class scheduler;
}

namespace strata::detail::posix {

// That of pthreads. Settings from STRATA_* variables; stacks as large as the system's default for
// kernel threads unless they say otherwise. Ends the process, with a message and status 2, when
// those are wrong. Throws what says that there is no memory, or no thread for a worker; the next
// who asks tries again.
scheduler& process_runtime();
// Whether one of the two has been started. Between the next two nobody starts one.
[[nodiscard]] bool has_process_runtime() noexcept;
void hold_runtime_start();
void release_runtime_start() noexcept;
// In the child of a fork: their workers are no more, and the next thread starts another one.
void forget_process_runtimes() noexcept;
// s is one of the two; it is that of pthreads, whose workers block all signals but faults. Null is
// neither.
[[nodiscard]] bool is_process_runtime(const scheduler* s) noexcept;
[[nodiscard]] bool blocks_signals(const scheduler* s) noexcept;
// What the process had blocked when that of pthreads was started, as threads have that say nothing
// else.
[[nodiscard]] const sigset_t& mask_at_start() noexcept;

// Where the calling thread's new threads go. Throws as process_runtime().
scheduler& runtime_for_new_thread();

}  // namespace strata::detail::posix
