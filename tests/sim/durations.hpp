// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace strata::test {

// Of the simulated clock.
inline constexpr std::int64_t second_ns = 1'000'000'000;

}  // namespace strata::test
