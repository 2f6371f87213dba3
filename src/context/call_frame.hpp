// SPDX-License-Identifier: Apache-2.0
// From a frame to its caller's: an interpreter of DWARF's call frame instructions (DWARF 5, section
// 6.4).
#pragma once
#include <cstdint>

#include "context/frame_description.hpp"
#include "context/frame_state.hpp"

namespace strata::detail {

// Makes `registers`, those of a frame that is in the code that `d` describes, at `pc`, those of its
// caller; those that are not known any more are forgotten. False, and nothing is changed, where
// the stack ends, and when the instructions or what they read are unknown. Reads the instructions
// and `memory`, nothing else.
bool step_to_caller(const frame_description& d, std::uintptr_t pc, const stack_copy& memory,
                    frame_registers& registers) noexcept;

}  // namespace strata::detail
