// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does elsewhere: calls, threads, and which node is near.
#pragma once
#include "strata/runtime.hpp"

void find_nearest(strata::runtime& rt);
void calls(strata::runtime& rt);
