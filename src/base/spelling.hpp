// SPDX-License-Identifier: Apache-2.0
// How functions and addresses are written for a person.
#pragma once
#include <cstdio>
#include <string>
#include <string_view>

namespace strata {

// "main()::<lambda()>" out of "const char* type_name() [with T = main()::<lambda()>]", which is how
// g++ writes __PRETTY_FUNCTION__ ("[T = ...]" with clang). Anything else stays as it is.
// Async-signal-safe.
constexpr std::string_view plain_name(std::string_view pretty) noexcept {
  const auto bracket = pretty.find(" [");
  const auto equals = bracket == std::string_view::npos ? bracket : pretty.find(" = ", bracket);
  if (equals == std::string_view::npos || !pretty.ends_with(']')) return pretty;
  return pretty.substr(equals + 3, pretty.size() - equals - 4);
}

// As a debugger takes it: "0x7f0c1e3a9d40".
inline std::string hexadecimal(const void* p) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", p);
  return text;
}

}  // namespace strata
