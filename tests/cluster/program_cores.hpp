// SPDX-License-Identifier: Apache-2.0
// What the program of whole jobs sees of the cores that it may use.
#pragma once
#include "strata/runtime.hpp"

// Where the thread may run that is going to make the runtime.
void remember_cpus();
// The runtime has left it there, or given it a core of its own.
void any_core(strata::runtime& rt);
void one_core(strata::runtime& rt);
