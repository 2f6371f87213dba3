// SPDX-License-Identifier: Apache-2.0
// How often the program and its test cut and mend a cable: both have to say the same.
#pragma once
#include "../common/sampled.hpp"

namespace detours_test {

// The first one is cut, then the other one, then the first one again, when both have been made
// anew.
inline constexpr int rounds_of_cables = strata::test::sampled(3, 2);

}  // namespace detours_test
