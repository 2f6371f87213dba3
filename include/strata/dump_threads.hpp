// SPDX-License-Identifier: Apache-2.0
// What every thread of the program is doing, for people. See also options::dump_signal and the gdb
// script (docs/threads.md).
#pragma once
#include <cstdio>
#include <string>

namespace strata {

/// One paragraph for each thread, task or fork-join branch that has a stack in any runtime of this
/// process: its number, name and state (running and on which worker, ready, waiting for what and at
/// which address), and where it is: a backtrace, innermost call first. Then the threads that have
/// not begun, by name.
///
/// Any thread may call it, at any time. A thread that moves while it is looked at is looked at
/// again, a few times. Nobody is stopped for it but a worker that runs a thread, for some 50 us, as
/// by a debugger; where that is not allowed (a debugger is there already, containers that forbid
/// ptrace(), ThreadSanitizer), what runs on another worker is shown without a backtrace. Some 50 us
/// a thread, less when many are in the same place. Orders no memory: what it says may have changed.
/// Never suspends. Throws std::bad_alloc; within a runtime, where an OS thread does it,
/// std::system_error (resource_unavailable_try_again) where the system has none.
[[nodiscard]] std::string threads_text();

/// Writes threads_text() to `out`, which blocks the calling OS thread while `out` takes nothing,
/// and so its worker. Errors of writing are std::ferror()'s; throws as threads_text().
void dump_threads(std::FILE* out = stderr);

}  // namespace strata
