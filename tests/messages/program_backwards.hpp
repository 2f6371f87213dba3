// SPDX-License-Identifier: Apache-2.0
// A receiver that takes what thousands of threads send in another order than theirs.
#pragma once
#include "strata/runtime.hpp"

void received_backwards(strata::runtime& rt);
