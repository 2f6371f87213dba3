// SPDX-License-Identifier: Apache-2.0
// DWARF's stack machine (DWARF 5, section 2.5), as far as compilers and linkers use it for frames:
// realigned stack pointers, procedure linkage tables.
#pragma once
#include <cstdint>
#include <optional>

#include "context/dwarf_reader.hpp"
#include "context/frame_state.hpp"

namespace strata::detail {

// What `code` leaves on top of its stack, which begins with `first`, if any. Nothing when an
// operation is unknown or broken, or needs a register or a word that are not known.
std::optional<std::uintptr_t> evaluate(dwarf_reader code, const frame_registers& registers,
                                       const stack_copy& memory,
                                       std::optional<std::uintptr_t> first) noexcept;

}  // namespace strata::detail
