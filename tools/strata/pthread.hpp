// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tools/strata/processes/child.hpp"

namespace strata::launcher {

// strata pthread [--strata-...] PROGRAM ARGUMENTS...: becomes PROGRAM, with its threads on our
// workers and all else as this process found it. Returns only for --help. Throws user_error when
// that cannot work.
int run_pthread(int argc, char** argv, const inherited_state& inherited);

}  // namespace strata::launcher
