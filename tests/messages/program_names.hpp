// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with names, and with what has one.
#pragma once
#include "strata/runtime.hpp"

void names_at_once(strata::runtime& rt);
void names_found_once(strata::runtime& rt);
void names_found_often(strata::runtime& rt);
void named_objects_end(strata::runtime& rt);
void named_tasks(strata::runtime& rt);
