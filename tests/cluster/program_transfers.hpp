// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with split-phase operations.
#pragma once
#include "strata/runtime.hpp"

void blocks(strata::runtime& rt);
void flood(strata::runtime& rt);
void keep_busy(strata::runtime& rt);
