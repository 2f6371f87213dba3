// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with exceptions that come home from other nodes.
#pragma once
#include "strata/runtime.hpp"

void exceptions(strata::runtime& rt);
void exceptions_by_way(strata::runtime& rt);
void fiber_exceptions(strata::runtime& rt);
void fiber_exceptions_heard_elsewhere(strata::runtime& rt);
void fiber_exceptions_beside_waits(strata::runtime& rt);
