// SPDX-License-Identifier: Apache-2.0
// The switch for aarch64.
#if defined(__aarch64__)
#include <cstdint>

#include "context/switch.hpp"

// AAPCS64: x19-x30, sp and the low halves of v8-v15 survive a call. `hint #34` is `bti c`: in a
// program with -mbranch-protection each call by way of a register, as a linker's veneer makes it,
// has to land on one. Older processors do nothing there, and older assemblers know no other name.
asm(R"(
  .text
  .p2align 4
  .globl strata_switch_context
  .type strata_switch_context,%function
strata_switch_context:
  .cfi_startproc
  hint #34
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
  hint #34
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

#endif
