// SPDX-License-Identifier: Apache-2.0
// The switch for x86-64.
#if defined(__x86_64__)
#include <cstdint>

#include "context/switch.hpp"

// It leaves by `ret`, not by a jump, because it was called: contexts that switch to each other
// mostly stand at the same depth of the same functions, and then the processor predicts this return
// and all that follow it. See also switch_context_inline(). System V: rbx, rbp, r12-r15 and rsp
// survive a call, so they are what a switch must keep. A new context starts in the trampoline with
// its entry in r12 and its argument, the stack, in r13; undefined rip there ends every backtrace
// cleanly. See last_frame.cpp for exceptions that get there.
asm(R"(
  .text
  .p2align 4
  .globl strata_switch_context
  .type strata_switch_context,@function
strata_switch_context:
  .cfi_startproc
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .cfi_endproc
  .size strata_switch_context,.-strata_switch_context

  .p2align 4
  .globl strata_call_with_context
  .hidden strata_call_with_context
  .type strata_call_with_context,@function
strata_call_with_context:
  .cfi_startproc
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  .cfi_adjust_cfa_offset 48
  movq %rdi, %rax
  movq %rsp, %rdi
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  callq *%rax
  addq $56, %rsp
  .cfi_adjust_cfa_offset -56
  ret
  .cfi_endproc
  .size strata_call_with_context,.-strata_call_with_context

  .p2align 4
  .globl strata_context_begin
  .hidden strata_context_begin
  .type strata_context_begin,@function
strata_context_begin:
  .cfi_startproc
  .cfi_personality 0x1b, strata_last_frame
  .cfi_undefined rip
  endbr64
  movq %r13, %rdi
  callq *%r12
  ud2
  .cfi_endproc
  .size strata_context_begin,.-strata_context_begin
  .section .note.GNU-stack,"",@progbits
  .text
)");

extern "C" void strata_context_begin() noexcept;

namespace strata::detail {

void* make_context(void* top, void (*entry)(void*), void* argument) noexcept {
  auto aligned = reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{15};
  auto* sp = reinterpret_cast<std::uintptr_t*>(aligned);
  // After the six pops and the return address, rsp is 16-byte aligned, as the call in the
  // trampoline wants it.
  *--sp = 0;
  *--sp = 0;
  *--sp = reinterpret_cast<std::uintptr_t>(&strata_context_begin);
  *--sp = 0;                                           // rbp
  *--sp = 0;                                           // rbx
  *--sp = reinterpret_cast<std::uintptr_t>(entry);     // r12
  *--sp = reinterpret_cast<std::uintptr_t>(argument);  // r13
  *--sp = 0;                                           // r14
  *--sp = 0;                                           // r15
  return sp;
}

}  // namespace strata::detail

#endif
