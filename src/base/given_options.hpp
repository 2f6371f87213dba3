// SPDX-License-Identifier: Apache-2.0
// options::parse(), and which options the user has said anything about: a value that is given may
// be that of the default.
#pragma once
#include <string_view>
#include <vector>

#include "strata/options.hpp"

namespace strata {

struct given_options {
  options settings;
  std::vector<std::string_view> names;  // as in the table, by file, variable or flag

  [[nodiscard]] bool has(std::string_view name) const noexcept;
};

// Otherwise as options::parse().
given_options parse_given(int& argc, char** argv);

}  // namespace strata
