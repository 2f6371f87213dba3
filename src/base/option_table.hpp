// SPDX-License-Identifier: Apache-2.0
// The table of a runtime's options: what each is called, what it takes and which values are
// allowed. Flags, variables, files, the help and the check of what a program filled in all walk
// these rows, so a new option is one more of them.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <variant>

#include "strata/options.hpp"

namespace strata {

// What an option takes, and where it is kept.
struct whole_number {
  unsigned options::*field;
  unsigned least, most;
  bool may_be_zero = false;  // where a program filled it in: 0 stands for the default
};
struct byte_count {
  std::size_t options::*field;
  std::size_t least, most;
  bool may_be_zero = false;  // as above
};
struct on_off {
  bool options::*field;
};
struct one_of {
  std::string options::*field;
  std::span<const std::string_view> names;
  bool may_be_empty = false;  // where a program filled it in: nobody has chosen
};
struct free_text {
  std::string options::*field;
  void (*check)(const std::string&) = nullptr;  // throws user_error; null: whatever it is
};

struct option_row {
  std::string_view name;   // "stack-bytes"
  std::string_view takes;  // for the help: "SIZE"; empty: a flag that may stand alone
  std::string_view help;
  std::variant<whole_number, byte_count, on_off, one_of, free_text> kind;

  [[nodiscard]] bool needs_value() const noexcept { return !takes.empty(); }
  // As a user wrote it. Throws user_error, with words that continue "<where>: ".
  void set(options& o, std::string_view text) const;
  // What a program filled in. Throws misuse_error.
  void check(const options& o) const;
};

[[nodiscard]] std::span<const option_row> option_table() noexcept;
// Null: no option is called so.
[[nodiscard]] const option_row* find_option(std::string_view name) noexcept;

}  // namespace strata
