// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does elsewhere: calls, branches and tokens that take and return
// objects.
#pragma once
#include "strata/runtime.hpp"

void object_calls(strata::runtime& rt);
void object_forks(strata::runtime& rt);
void object_tokens(strata::runtime& rt);
void tokens_not_read(strata::runtime& rt);
void lost_with_forks(strata::runtime& rt);
void lost_with_objects(strata::runtime& rt);
