// SPDX-License-Identifier: Apache-2.0
// The way out of a thread.
#pragma once
#include "pthread/record.hpp"

namespace strata::detail::posix {

// pthread_exit() and cancellation, by the thread itself: unwinds its stack, which runs cleanup
// handlers and destructors, up to run_to_exit(), or to the end of a thread that has not gone
// through there.
[[noreturn]] void leave_thread(record& r, void* result);

// Calls r.start(r.argument), which may leave by leave_thread(); the result is in r.result. True
// when it did.
bool run_to_exit(record& r);

}  // namespace strata::detail::posix
