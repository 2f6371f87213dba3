// SPDX-License-Identifier: Apache-2.0
// Flags of the runtime for a program that knows variables only.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace strata {

struct leading_flags {
  std::size_t words = 0;  // that they take
  // What says the same, name and value, in the order of the flags: the last of a name counts.
  std::vector<std::pair<std::string, std::string>> variables;
};

// The --strata-* flags with which `arguments` begin. As options::parse(): --strata-help prints the
// table of settings and ends the process; throws user_error for an unknown flag or a bad value.
leading_flags read_leading_flags(std::span<char*> arguments);

}  // namespace strata
