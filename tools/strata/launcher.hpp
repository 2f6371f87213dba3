// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/strata/processes/child.hpp"
#include "tools/strata/run_request.hpp"

namespace strata::launcher {

// Runs the job to its end and returns its exit status. Throws user_error and error when it cannot
// be started; nothing runs then.
int run_job(const run_request& what, inherited_state& inherited);

}  // namespace strata::launcher
