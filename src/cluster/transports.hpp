// SPDX-License-Identifier: Apache-2.0
// Which transports a node uses: shared memory to the nodes of its own host, and TCP, UCX or UDP to
// all others; or one of them to all. Where the user names several networks, TCP or UDP goes over
// those that two nodes share.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "cluster/entrance.hpp"
#include "cluster/routes.hpp"
#include "cluster/surveyor.hpp"
#include "cluster/way_plan.hpp"
#include "launch/job.hpp"
#include "net/transport.hpp"
#include "strata/options.hpp"

namespace strata::cluster {

struct connections {
  std::vector<std::unique_ptr<net::transport>> transports;  // the fastest first
  std::unique_ptr<reach> who;                               // is where
  routes ways;
  // From what all compute their ways; none: they never change.
  std::optional<way_plan> plan;
  // By node: what was measured when the job began.
  std::vector<std::vector<launch::measured_link>> told;
  // Whose spare connection, of the last transport, has ended already; and whose was measured, and
  // is so much better that it takes the other's place. Both may be true of one: the other end,
  // which may not know of the end yet, changes their places too.
  std::vector<node_id> lost_spares;
  std::vector<node_id> better_by_spare;
  std::unique_ptr<entrance> door;  // of an elastic job; else null
  // What nodes that began before this one have said to it: comes before all else.
  std::vector<early_message> early;
};

// Opens them and connects; blocks until every node of the job is there. Where the user names
// several networks, they are measured then, for at most about two seconds. Throws strata::error;
// user_error when the networks leave a node out.
connections open_transports(launch::control_line& line, const options& settings);

}  // namespace strata::cluster
