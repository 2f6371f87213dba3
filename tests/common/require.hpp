// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdexcept>
#include <string>

namespace strata::test {

// For programs that are no tests by themselves: who runs them reads what was not as it should be.
inline void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}
inline void require(bool condition, const std::string& what) { require(condition, what.c_str()); }

}  // namespace strata::test
