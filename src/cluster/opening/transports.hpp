// SPDX-License-Identifier: Apache-2.0
// Which transports a node uses: shared memory to the nodes of its own host, and TCP, UCX or UDP to
// all others; or one of them to all. Where the user names networks, or lets the nodes find them,
// each has a kind of its own, and two nodes talk over one that they share by the transport of that
// kind: one for all networks of TCP, one for those of UDP, one for each of UCX; and the same again
// for spare connections.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "cluster/opening/entrance.hpp"
#include "cluster/opening/reopening.hpp"
#include "cluster/opening/surveyor.hpp"
#include "cluster/ways/routes.hpp"
#include "cluster/ways/way_plan.hpp"
#include "launch/job.hpp"
#include "net/transport.hpp"
#include "strata/options.hpp"

namespace strata::cluster {

struct connections {
  // Memory first, spare connections last.
  std::vector<std::unique_ptr<net::transport>> transports;
  std::unique_ptr<reach> who;  // is where
  routes ways;
  // From what all compute their ways; none: they never change.
  std::optional<way_plan> plan;
  // By node: what was measured when the job began.
  std::vector<std::vector<launch::measured_link>> told;
  // Whose spare connection has ended already; and whose was measured, and is so much better that it
  // takes the other's place. Both may be true of one: the other end, which may not know of the end
  // yet, changes their places too.
  struct lost_spare {
    node_id node;
    const net::transport* over;  // one of the transports
  };
  std::vector<lost_spare> lost_spares;
  std::vector<node_id> better_by_spare;
  std::unique_ptr<entrance> door;  // of an elastic job; else null
  // Where connections that end are made again; null: nowhere.
  std::unique_ptr<reopening> again;
  // What nodes that began before this one have said to it: comes before all else.
  std::vector<early_message> early;
  // Of the transports, and what these networks are called.
  std::vector<on_networks> networks;
  std::vector<std::string> network_names;
};

// Opens them and connects; blocks until every node of the job is there. Where the user names
// several networks, they are measured then, for at most about two seconds. Throws strata::error;
// user_error when the networks leave a node out. `build`: what all nodes must have in common.
connections open_transports(launch::control_line& line, const options& settings,
                            const std::string& build);

}  // namespace strata::cluster
