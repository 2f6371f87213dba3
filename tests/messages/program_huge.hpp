// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with a message of more bytes than 32 bits count.
#pragma once
#include "strata/runtime.hpp"

void huge(strata::runtime& rt);
