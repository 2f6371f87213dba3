// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with messages of any size that come back.
#pragma once
#include "strata/runtime.hpp"

void echoes(strata::runtime& rt);
void ended_targets(strata::runtime& rt);
