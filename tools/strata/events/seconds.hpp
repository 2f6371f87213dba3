// SPDX-License-Identifier: Apache-2.0
// A limit as people read it.
#pragma once
#include <cstdint>
#include <string>

namespace strata::launcher {

// "30 s"
inline std::string to_seconds(std::int64_t ns) {
  std::string text = std::to_string(static_cast<double>(ns) / 1e9);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace strata::launcher
