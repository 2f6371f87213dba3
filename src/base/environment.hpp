// SPDX-License-Identifier: Apache-2.0
// Variables whose caller may have said what this process is to do. A program that has rights of its
// own (set-user-ID and the like) takes none, and no file of settings: they are those of whoever
// calls it, who must not have it read files, or join jobs, with rights that he does not have
// himself.
#pragma once
#include <sys/auxv.h>

#include <cstdlib>

namespace strata {

inline bool takes_variables() noexcept { return getauxval(AT_SECURE) == 0; }

// Null: it is not set.
inline const char* find_variable(const char* name) noexcept {
  return takes_variables() ? std::getenv(name) : nullptr;
}

}  // namespace strata
