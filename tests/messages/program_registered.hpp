// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with registered memory.
#pragma once
#include "strata/runtime.hpp"

// Prints, before anything else, whether a network has used the registrations.
void registered(strata::runtime& rt);
