// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does on nodes that sleep until a message comes.
#pragma once
#include "strata/runtime.hpp"

void waits_with_a_deadline(strata::runtime& rt);
void wakes_one(strata::runtime& rt);
void guests_come_and_go(strata::runtime& rt);
void goes_around(strata::runtime& rt);
