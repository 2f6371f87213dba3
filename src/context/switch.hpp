// SPDX-License-Identifier: Apache-2.0
// The machine's part of a context switch: callee-saved registers and the stack pointer, nothing
// else.
//
// MXCSR and the x87 control word are left alone on purpose: reloading MXCSR costs about 70 ns
// whenever its sticky flags differ, and a program that changes rounding modes inside a task can
// restore them itself. (Boost.Context's fcontext reloads both.) Of programs that cannot be asked
// to, floating_point.hpp takes them along.
#pragma once
#include <cstddef>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "strata: no context switch for this architecture; see docs/porting.md"
#endif

namespace strata::detail {

// Saves the caller's context in *from and continues `to`; returns when somebody continues *from.
extern "C" void strata_switch_context(void** from, void* to) noexcept;

#if defined(__x86_64__) && defined(STRATA_NO_RED_ZONE) && !defined(STRATA_ASAN) && \
    !defined(STRATA_TSAN)
#define STRATA_SWITCH_INLINE 1
// The same in the caller's own code, which no call leads to and no return leaves: the processor
// predicts returns by a stack of its own, so that a `ret` to another place than its call's costs a
// misprediction, while a jump to where contexts mostly stop is predicted. What is saved looks the
// same. The compiler must not keep anything below the stack pointer: only for files that are
// compiled with -mno-red-zone and say so.
[[gnu::always_inline]] inline void switch_context_inline(void** from, void* to) noexcept {
  asm volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "pushq %%rbp\n\t"
      "pushq %%rbx\n\t"
      "pushq %%r12\n\t"
      "pushq %%r13\n\t"
      "pushq %%r14\n\t"
      "pushq %%r15\n\t"
      "movq %%rsp, (%%rdi)\n\t"
      "movq %%rsi, %%rsp\n\t"
      "popq %%r15\n\t"
      "popq %%r14\n\t"
      "popq %%r13\n\t"
      "popq %%r12\n\t"
      "popq %%rbx\n\t"
      "popq %%rbp\n\t"
      "popq %%rcx\n\t"
      "jmpq *%%rcx\n"
      "1:\n\t"
      "endbr64"
      : "+D"(from), "+S"(to)
      :
      : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
        "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15",
#if defined(__AVX512F__)
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6",
        "k7",
#endif
        "memory", "cc");
}
#endif

// Calls f(context, argument), where `context` is what a switch would have saved of the caller; it
// is valid until f returns.
extern "C" void strata_call_with_context(void (*f)(void* context, void* argument),
                                         void* argument) noexcept;

// A context that, when first continued, calls entry(argument) on the stack that ends at `top`.
// Entry must not return. An exception that leaves it ends the program with the name of what ran
// there: `argument` is a `stack`, where entry can throw.
void* make_context(void* top, void (*entry)(void*), void* argument) noexcept;

}  // namespace strata::detail
