// SPDX-License-Identifier: Apache-2.0
// A library of the program, with variables of its own for each thread.
#include "tests/pthread/locals_library.hpp"

namespace {
thread_local long count = 40;
}

long* count_of_library() { return &count; }
