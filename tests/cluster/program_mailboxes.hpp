// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs does with mailboxes.
#pragma once
#include "strata/runtime.hpp"

void mailboxes(strata::runtime& rt);
