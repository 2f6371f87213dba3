// SPDX-License-Identifier: Apache-2.0
#include "context/switch.hpp"

#include <cstdint>

#if defined(__x86_64__)

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

#elif defined(__aarch64__)

// AAPCS64: x19-x30, sp and the low halves of v8-v15 survive a call.
asm(R"(
  .text
  .p2align 4
  .globl strata_switch_context
  .type strata_switch_context,%function
strata_switch_context:
  .cfi_startproc
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8,  d9,  [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8,  d9,  [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .cfi_endproc
  .size strata_switch_context,.-strata_switch_context

  .p2align 4
  .globl strata_call_with_context
  .hidden strata_call_with_context
  .type strata_call_with_context,%function
strata_call_with_context:
  .cfi_startproc
  sub sp, sp, #160
  .cfi_adjust_cfa_offset 160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  .cfi_offset x29, -80
  .cfi_offset x30, -72
  mov x9, x0
  mov x0, sp
  blr x9
  ldp x29, x30, [sp, #80]
  add sp, sp, #160
  .cfi_adjust_cfa_offset -160
  ret
  .cfi_endproc
  .size strata_call_with_context,.-strata_call_with_context

  .p2align 4
  .globl strata_context_begin
  .hidden strata_context_begin
  .type strata_context_begin,%function
strata_context_begin:
  .cfi_startproc
  .cfi_personality 0x1b, strata_last_frame
  .cfi_undefined x30
  mov x0, x20
  blr x19
  brk #1
  .cfi_endproc
  .size strata_context_begin,.-strata_context_begin
  .section .note.GNU-stack,"",%progbits
  .text
)");

extern "C" void strata_context_begin() noexcept;

namespace strata::detail {

void* make_context(void* top, void (*entry)(void*), void* argument) noexcept {
  auto aligned = reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{15};
  auto* sp = reinterpret_cast<std::uintptr_t*>(aligned - 160);
  for (int i = 0; i < 20; ++i) sp[i] = 0;
  sp[0] = reinterpret_cast<std::uintptr_t>(entry);                   // x19
  sp[1] = reinterpret_cast<std::uintptr_t>(argument);                // x20
  sp[11] = reinterpret_cast<std::uintptr_t>(&strata_context_begin);  // x30
  return sp;
}

}  // namespace strata::detail

#else
#error "strata: no context switch for this architecture; see docs/porting.md"
#endif
