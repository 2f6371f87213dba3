// SPDX-License-Identifier: Apache-2.0
// The machine's part of a context switch: callee-saved registers and the stack pointer, nothing
// else.
//
// MXCSR and the x87 control word are left alone on purpose: reloading MXCSR costs about 70 ns
// whenever its sticky flags differ, and a program that changes rounding modes inside a task can
// restore them itself. (Boost.Context's fcontext reloads both.)
#pragma once
#include <cstddef>

namespace strata::detail {

// Saves the caller's context in *from and continues `to`; returns when somebody continues *from.
extern "C" void strata_switch_context(void** from, void* to) noexcept;

// Calls f(context, argument), where `context` is what a switch would have saved of the caller; it
// is valid until f returns.
extern "C" void strata_call_with_context(void (*f)(void* context, void* argument),
                                         void* argument) noexcept;

// A context that, when first continued, calls entry(argument) on the stack that ends at `top`.
// Entry must not return.
void* make_context(void* top, void (*entry)(void*), void* argument) noexcept;

}  // namespace strata::detail
