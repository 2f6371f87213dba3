// SPDX-License-Identifier: Apache-2.0
// Which transports a node uses: shared memory to the nodes of its own host, TCP to all others; or
// UCX to all.
#pragma once
#include <memory>
#include <vector>

#include "launch/job.hpp"
#include "net/transport.hpp"
#include "strata/options.hpp"

namespace strata::cluster {

// Opens them and connects; blocks until every node of the job is there. The fastest first. Throws
// strata::error.
std::vector<std::unique_ptr<net::transport>> open_transports(launch::control_line& line,
                                                             const options& settings);

}  // namespace strata::cluster
