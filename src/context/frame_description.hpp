// SPDX-License-Identifier: Apache-2.0
// Which entry of a module's .eh_frame describes a piece of code, and what it says (Linux Standard
// Base 5.0, Core, section 10.6): a sorted index, .eh_frame_hdr, refers to entries, each of which
// refers to what it has in common with others. Read are only the two spans that are passed;
// pointers that leave them give nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "context/dwarf_reader.hpp"

namespace strata::detail {

struct frame_description {
  std::uintptr_t begin = 0, end = 0;  // of the code it describes
  std::uint64_t code_align = 1;       // factors of the instructions' operands
  std::int64_t data_align = 1;
  std::uint64_t return_column = 0;  // the register that stands for the return address
  bool signal = false;              // the caller was interrupted here; it did not call
  dwarf_reader common;              // instructions for the rules at `begin`
  dwarf_reader own;                 // those that follow
};

// That of the code at `pc`, if any. `image`: the whole module as it is in memory, which the result
// refers to. `index`: its .eh_frame_hdr.
std::optional<frame_description> find_frame_description(std::span<const std::byte> image,
                                                        std::span<const std::byte> index,
                                                        std::uintptr_t pc) noexcept;

}  // namespace strata::detail
