// SPDX-License-Identifier: Apache-2.0
// What tools/gdb/strata-gdb.py needs to know of our types, for programs built without debugging
// information.
#pragma once
#include <array>
#include <cstdint>

// In the order of FIELDS in the script.
extern "C" const std::array<std::uintptr_t, 21> strata_debugger_layout;
