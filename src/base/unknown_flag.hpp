// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command line that CLI11 refuses.
#pragma once
#include <string>
#include <vector>

#include "shortened.hpp"  // by programs outside src, too

namespace strata {

// The first flag among the words for which there was no use; where none is one, what CLI11 says:
// it speaks first of what is missing, which may stand behind a flag that is misspelt.
inline std::string unknown_flag_or(const std::string& said, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.size() > 1 && word.front() == '-' && word != "--")
      return "unknown flag " + brief(word);
  }
  return said;
}

}  // namespace strata
