// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs keeps of messages that nobody receives.
#pragma once
#include "strata/runtime.hpp"

void kept_memory(strata::runtime& rt);
void kept_apart(strata::runtime& rt);
