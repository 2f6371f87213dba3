// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with what its nodes publish for each other: values, objects,
// locks, domains.
#pragma once
#include "strata/runtime.hpp"

void names(strata::runtime& rt);
