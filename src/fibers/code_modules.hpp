// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

namespace strata::detail {

// The executable and the shared libraries that are loaded now, or were, and in which code lies that
// travels between nodes: where each begins in memory. No more than code_modules_max of them. Any
// thread.
inline constexpr std::size_t code_modules_max = 64;
std::vector<const void*> modules_of_travelling_code();

}  // namespace strata::detail
