// SPDX-License-Identifier: Apache-2.0
// What the tests of simulated nodes without memory share.
#pragma once
#include <cstddef>

namespace strata::test {

// Of what there is no memory for, while there is for all else.
inline constexpr std::size_t large = std::size_t{2} << 20;

}  // namespace strata::test
