// SPDX-License-Identifier: Apache-2.0
// How a thread is left in the middle, by pthread_exit() and by cancellation. Who catches everything
// has to let both of these through.
#pragma once
#if __has_include(<bits/cxxabi_forced.h>)
#include <bits/cxxabi_forced.h>
#endif

namespace strata::detail {

// Thrown where the thread was not begun by pthread_create(); ends the thread it leaves.
struct thread_exit {};

// Elsewhere the stack is unwound as the C library does it: see src/pthread/exit.cpp.
#if __has_include(<bits/cxxabi_forced.h>)
using forced_unwinding = __cxxabiv1::__forced_unwind;
#else
struct forced_unwinding {};
#endif

}  // namespace strata::detail
