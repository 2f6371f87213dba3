// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "strata/runtime.hpp"

// A newcomer is lost before the launcher knows that it takes part, and node 0 ends as soon as its
// program hears of that. With WORDS_ARE_LATE in the environment.
void abrupt_loss(strata::runtime& rt);
