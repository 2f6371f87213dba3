// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with large messages.
#pragma once
#include "strata/runtime.hpp"

void large(strata::runtime& rt);
void large_gives_way(strata::runtime& rt);
void copied_by_both(strata::runtime& rt);
void killed_while_it_helps(strata::runtime& rt);
void lost_in_the_middle(strata::runtime& rt);
