// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does elsewhere: stops of the whole job.
#pragma once
#include "strata/runtime.hpp"

void stops(strata::runtime& rt);
