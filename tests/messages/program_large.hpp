// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with large messages.
#pragma once
#include "strata/runtime.hpp"

void large(strata::runtime& rt);
void lost_in_the_middle(strata::runtime& rt);
