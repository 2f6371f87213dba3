// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does while it waits for a node that is lost.
#pragma once
#include "strata/runtime.hpp"

void lost(strata::runtime& rt);
void lost_within(strata::runtime& rt);
void lost_with_locks(strata::runtime& rt);
