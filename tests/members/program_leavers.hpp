// SPDX-License-Identifier: Apache-2.0
// What becomes of the names, objects, members of domains and frames of a node that leaves, and of
// calls on all that come to it too late.
#pragma once
#include "strata/runtime.hpp"

void leave_behind(strata::runtime& rt);
void leave_frames(strata::runtime& rt);
void leave_between(strata::runtime& rt);
