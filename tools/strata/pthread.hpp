// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace strata::launch {

// strata pthread [--strata-...] PROGRAM ARGUMENTS...: becomes PROGRAM, with its threads on our
// workers. Returns only for --help. Throws user_error when that cannot work.
int run_pthread(int argc, char** argv);

}  // namespace strata::launch
