// SPDX-License-Identifier: Apache-2.0
// Which node goes to which host, and where the nodes of a host listen.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "launch/job.hpp"
#include "tools/strata/control/control_messages.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/run_request.hpp"

namespace strata::launcher {

// A host with what the launcher found out about it.
struct placed_host {
  std::string name{};
  bool local = true;
  std::string bind_address = "127.0.0.1";
  std::vector<node_id> nodes{};
};

// The hosts of a job, and for each node the number of its host. Throws user_error.
std::vector<placed_host> place(const run_request& what, std::vector<std::uint16_t>& host_of);

// The host of nodes that come to a job on `present` hosts: another one, or a local one where there
// was none. Throws user_error when its nodes and theirs could not reach each other.
placed_host place_late(const join_request& what, transport_choice transport,
                       const std::vector<placed_host>& present);

// What such a request says of the host, for the user's command: the launcher does not look up
// names, which takes time. Nothing for this machine. Throws user_error.
join_request look_up_late(const std::string& host);

}  // namespace strata::launcher
