// SPDX-License-Identifier: Apache-2.0
#include "threads/debugger.hpp"

#include <cstddef>

#include "context/overflow.hpp"
#include "context/stack_pool.hpp"
#include "threads/thread_block.hpp"
#include "threads/waiter.hpp"

// Of types with bases, but without virtual ones: every compiler that we know of can.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

// gdb runs it when it loads the program, if it trusts the place where that lies. Not loaded into
// memory otherwise.
asm(R"(
  .pushsection ".debug_gdb_scripts", "MS",%progbits,1
  .byte 4
  .ascii "strata-gdb.py\n"
  .incbin "strata-gdb.py"
  .byte 0
  .popsection
)");

using strata::detail::stack;
using strata::detail::stack_pool;
using strata::detail::task_type;
using strata::detail::thread_block;
using strata::detail::thread_extras;

// The script takes that for granted.
static_assert(strata::detail::waiter::waiting == 0);

extern "C" const std::array<std::uintptr_t, 21> strata_debugger_layout{
    4,
    reinterpret_cast<std::uintptr_t>(&strata::detail::watched_pools),
    strata::detail::watched_pools.size(),
    offsetof(stack_pool, pieces.first),
    offsetof(stack_pool, pieces.stride),
    stack_pool::header_bytes,
    stack_pool::colours,
    stack_pool::colour_bytes,
    offsetof(stack_pool, pieces.cut),
    offsetof(stack, sp),
    offsetof(stack, bottom),
    offsetof(stack, bytes),
    offsetof(stack, kind),
    offsetof(stack, thread),
    offsetof(stack, waits_for),
    offsetof(stack, waits_at),
    offsetof(stack, waits_until),
    offsetof(stack, number),
    offsetof(task_type, name),
    offsetof(thread_block, extras),
    offsetof(thread_extras, name)};
