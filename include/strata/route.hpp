// SPDX-License-Identifier: Apache-2.0
// How the nodes of a job reach each other: for placing what talks much close to each other, and for
// people (`strata info --routes`).
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "strata/global_ptr.hpp"

namespace strata {

/// The way of messages from the calling node to another one.
struct route {
  node_id_t next = 0;  ///< the neighbour that they go to first; the other node itself if it is one
  unsigned hops = 0;   ///< 1: a neighbour; more: other nodes forward them; 0: the node itself
  std::string transport{};  ///< of the first hop: "shm", "tcp", ...
  /// Of the first hop: "10.1.0.0/16", as the user has named it or nodes have found it. Empty: none
  /// was named or found, it is memory, or one of the two has joined later.
  std::string network{};
  /// Of a message of 4 KiB, in ns, by which ways are chosen: as measured last, rounded,
  /// and where ways differ by no more than noise explains, that of the best; nominal where nothing
  /// was measured. 0 for the node itself.
  std::int64_t cost_ns = 0;
  /// Of the networks on the way, one way, in ns, as measured last, rounded to powers of the square
  /// root of 2; where is_measured does not hold, nominal. 0 for the node itself.
  std::int64_t latency_ns = 0;
  /// The least of the networks on the way, in bytes a second, measured and rounded in the same way,
  /// or nominal. 0 for the node itself.
  std::int64_t bytes_per_s = 0;
  /// Whether all networks on the way were measured (several, named or found: `--strata-networks`),
  /// memory between them left out. What is nominal only says which of two ways should be better:
  /// through shared memory 0.5 us and 8.2 GB/s; over a network within a host 5 us and 2.5 GB/s;
  /// between hosts 10 us and 1.25 GB/s, or what the kinds and interfaces of named networks say.
  bool is_measured = false;
};

/// The way to `node`, as it is now: in a job of several networks another one may become better.
/// Does not wait for other nodes. Throws misuse_error outside a runtime and for a node that does
/// not exist.
[[nodiscard]] route route_to(node_id_t node);

/// Where to put what talks much to `to`: of the nodes `among`, the one to which messages from `to`
/// cost least (route::cost_ns), `to` itself if it is one of them; of equal ones the first.
///
///   const auto all = strata::members();
///   const auto node = strata::nearest_node(friends_endpoint.node(), all);
///
/// Nodes that are not there any more, or not yet, are passed over. From what this node knows of the
/// job: does not wait for other nodes. In a job of named networks, and for another node's `to`, the
/// ways are computed anew, which takes milliseconds where there are hundreds of nodes, and this
/// node receives nothing meanwhile: keep the answer. Any thread of a runtime. Throws misuse_error
/// outside a runtime, where `to` is not there, and where none of `among` is.
[[nodiscard]] node_id_t nearest_node(node_id_t to, std::span<const node_id_t> among);

}  // namespace strata
