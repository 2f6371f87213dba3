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
  /// Of a message of 4 KiB, in ns, by which ways are chosen: as measured last, rounded,
  /// and where ways differ by no more than noise explains, that of the best; nominal where nothing
  /// was measured; 0 where all ways are alike, in a job of one network.
  std::int64_t cost_ns = 0;
  /// Of the networks on the way, one way, in ns, as measured last; rounded to powers
  /// of the square root of 2. 0: not all of them were, or there are none.
  std::int64_t latency_ns = 0;
  /// The least of the networks on the way, in bytes a second, measured and rounded in the same way;
  /// 0: as above.
  std::int64_t bytes_per_s = 0;
};

/// The way to `node`, as it is now: in a job of several networks another one may become better.
/// Does not wait for other nodes. Throws misuse_error outside a runtime and for a node that does
/// not exist.
route route_to(node_id_t node);

}  // namespace strata
