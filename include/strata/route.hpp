// SPDX-License-Identifier: Apache-2.0
// How the nodes of a job reach each other: for placing what talks much close to each other, and for
// people (`strata info --routes`). (pCoR: requirement P12.)
#pragma once
#include <cstdint>
#include <string>

#include "strata/global_ptr.hpp"

namespace strata {

/// The way of messages from the calling node to another one.
struct route {
  node_id_t next = 0;  ///< the neighbour that they go to first; the other node itself if it is one
  unsigned hops = 0;   ///< 1: a neighbour; more: other nodes forward them; 0: the node itself
  std::string transport{};  ///< of the first hop: "shm", "tcp", ...
  std::int64_t cost_ns =
      0;  ///< nominal, of a message of 4 KiB; 0 where all ways are alike, in a job of one network
};

/// The way to `node`. The same for as long as the job runs; never blocks. Throws misuse_error
/// outside a runtime and for a node that does not exist.
route route_to(node_id_t node);

}  // namespace strata
