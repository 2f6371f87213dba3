// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with groups.
#pragma once
#include "strata/runtime.hpp"

void group_operations(strata::runtime& rt);
void group_errors(strata::runtime& rt);
void group_loses_a_node(strata::runtime& rt);
void group_example(strata::runtime& rt);
