// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with conversations that do not pause.
#pragma once
#include "strata/runtime.hpp"

void converse_nearby(strata::runtime& rt);
