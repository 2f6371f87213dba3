// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with messages that have come before somebody waits for them.
#pragma once
#include "strata/runtime.hpp"

void nothing_but_looks(strata::runtime& rt);
void taken_in(strata::runtime& rt);
void others_go_on(strata::runtime& rt);
