// SPDX-License-Identifier: Apache-2.0
// `strata info --routes`: a job of this very program whose nodes measure the ways between them.
#pragma once
#include "tools/strata/run_request.hpp"

namespace strata::launcher {

// The words after `strata info`, --routes among them, as the job that answers them: the flags of
// `strata run`, and --networks. Throws user_error.
run_request routes_request(int argc, char** argv);

// What every node of that job runs; node 0 prints.
int report_routes(int argc, char** argv);

}  // namespace strata::launcher
