// SPDX-License-Identifier: Apache-2.0
// What becomes of the names, objects and members of domains of a node that leaves.
#pragma once
#include "strata/runtime.hpp"

void leave_behind(strata::runtime& rt);
