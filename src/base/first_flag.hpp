// SPDX-License-Identifier: Apache-2.0
// Of the words for which a command line has no use.
#pragma once
#include <string>
#include <vector>

namespace strata {

// The first that is a flag; empty: none is. What is missing may stand behind a flag that is
// misspelt, and CLI11 speaks of that first.
inline std::string first_flag(const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (word.size() > 1 && word.front() == '-' && word != "--") return word;
  return {};
}

}  // namespace strata
