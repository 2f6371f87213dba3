// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does to see which path its messages take.
#pragma once
#include "strata/runtime.hpp"

void paths(strata::runtime& rt);
