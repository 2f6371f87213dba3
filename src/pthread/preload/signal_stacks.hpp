// SPDX-License-Identifier: Apache-2.0
// Signal stacks belong to OS threads. What a thread of ours sets is its worker's as long as it
// lives, and it stays there from then on: when it ends, or wants none, the worker has its own
// again, on which an overflow is told.
#pragma once
#include <signal.h>

namespace strata::preload {

// sigaltstack().
int set_signal_stack(const stack_t* stack, stack_t* before);

}  // namespace strata::preload
