// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with calls that other nodes may take over.
#pragma once
#include "strata/runtime.hpp"

void calls(strata::runtime& rt);
// The same for calls that are spawned.
void scopes(strata::runtime& rt);
void code_elsewhere(strata::runtime& rt);
