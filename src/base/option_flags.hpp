// SPDX-License-Identifier: Apache-2.0
// Flags of the runtime, `--strata-<name> <value>`, among the words of a command line; and what is
// said to a user who asks for them, or has misspelled one.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/option_table.hpp"

namespace strata {

// A value of an option, and where the user wrote it.
struct given_option {
  const option_row* what;
  std::string value;
  std::string where;
};
// In turn: the last of a name counts. Throws user_error, "<where>: <what is wrong>".
void set_all(options& target, const std::vector<given_option>& values);

struct flags {
  std::vector<given_option> values;
  std::string config;  // a file's name, or empty
  bool help = false;
  std::vector<char*> rest;  // what is no flag of the runtime
};
// Up to a literal `--`. The first word is the program's name. Throws user_error for an unknown
// flag, and one that lacks its value.
flags read_flags(std::span<char*> arguments);

// "stack-bytes" to "STRATA_STACK_BYTES".
std::string variable_of(std::string_view name);
inline constexpr std::string_view variable_prefix = "STRATA_";

// The last words of a complaint about an unknown name, which is given without its prefix and in the
// spelling of the table; `spell` turns the table's names into what the user should have typed.
std::string did_you_mean(std::string_view typed, std::string (*spell)(std::string_view));

// The table of options on stdout.
void print_option_help();

}  // namespace strata
