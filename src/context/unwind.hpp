// SPDX-License-Identifier: Apache-2.0
// Backtraces of stacks that are suspended or stopped, from a copy of their memory: reads nothing
// but the copy and the tables of loaded modules. The unwinder of the C++ library follows pointers
// in live memory; on a stack that somebody continues meanwhile it can crash. This one can be wrong
// then, never more.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "context/frame_state.hpp"
#include "context/loaded_modules.hpp"

namespace strata::detail {

// Return addresses, innermost first and at most depth_max, of what strata_switch_context() saved at
// `sp`. They end where the stack does, or where a frame is not understood. Throws std::bad_alloc.
std::vector<std::uintptr_t> backtrace(const loaded_modules& modules, std::uintptr_t sp,
                                      const stack_copy& memory, std::size_t depth_max);
// The same of what was stopped anywhere, with these registers, before the instruction at `pc`:
// first comes pc + 1, which is to it what a return address is to its call.
std::vector<std::uintptr_t> backtrace(const loaded_modules& modules, std::uintptr_t pc,
                                      const frame_registers& registers, const stack_copy& memory,
                                      std::size_t depth_max);

}  // namespace strata::detail
