// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace strata::launcher {

// The words after `strata info`. Throws user_error.
int run_info(int argc, char** argv);

}  // namespace strata::launcher
