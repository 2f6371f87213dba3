// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with tokens.
#pragma once
#include "strata/runtime.hpp"

void tokens(strata::runtime& rt);
void spread(strata::runtime& rt);
void lone_tokens(strata::runtime& rt);
void large_tokens(strata::runtime& rt);
void left_behind(strata::runtime& rt);
