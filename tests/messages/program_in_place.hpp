// SPDX-License-Identifier: Apache-2.0
// Messages that are looked at where they arrive.
#pragma once
#include "strata/runtime.hpp"

void in_place(strata::runtime& rt);
