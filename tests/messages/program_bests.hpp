// SPDX-License-Identifier: Apache-2.0
// Jobs whose nodes share the best that any of them has found.
#pragma once
#include "strata/runtime.hpp"

void bests(strata::runtime& rt);
// Where no worker ever comes to look for messages.
void bests_at_work(strata::runtime& rt);
