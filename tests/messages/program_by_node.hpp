// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with messages of one node, whichever of its endpoints they
// come from.
#pragma once
#include "strata/runtime.hpp"

void by_node(strata::runtime& rt);
