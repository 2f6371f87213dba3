// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with many threads, all of which send to all.
#pragma once
#include "strata/runtime.hpp"

void crowd(strata::runtime& rt);
void crowded_network(strata::runtime& rt);
