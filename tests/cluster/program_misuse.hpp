// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does that must not be done.
#pragma once
#include "strata/runtime.hpp"

void misuse(strata::runtime& rt);
void signal_too_many(strata::runtime& rt);
