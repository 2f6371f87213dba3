// SPDX-License-Identifier: Apache-2.0
// Messages within messages, to nodes that are no neighbours: what each hop makes of them. The
// runtime and the simulation send them in their own ways.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "cluster/words/codec.hpp"
#include "cluster/words/kinds.hpp"

namespace strata::cluster {

// The head of a message of kind::forward that goes by the ways of that number; body is the rest.
inline std::vector<std::byte> forwarding_head(kind k, node_id source, node_id destination,
                                              std::uint32_t ways, std::span<const std::byte> head) {
  const forwarded_head what{static_cast<net::message_kind>(k), source, destination, 0, ways};
  std::vector<std::byte> both(sizeof what + head.size());
  std::memcpy(both.data(), &what, sizeof what);
  std::copy(head.begin(), head.end(), both.begin() + sizeof what);
  return both;
}

// What has come in one of kind::forward to node self. Unless it is for self, it goes on, and counts
// as forwarded once more.
struct forwarded {
  forwarded_head what;
  std::span<const std::byte> payload;
};
// Throws malformed; also for what goes in a circle.
inline forwarded take_forwarded(reader r, node_id self, node_id nodes) {
  forwarded f{r.take<forwarded_head>(), {}};
  if (f.what.source >= nodes || f.what.destination >= nodes || f.what.source == self ||
      f.what.source == f.what.destination ||
      f.what.kind == static_cast<net::message_kind>(kind::forward))
    throw malformed("something to forward that nobody can have sent");
  if (f.what.destination != self && f.what.hops >= nodes - 1)
    throw malformed("a message from node " + std::to_string(f.what.source) + " to node " +
                    std::to_string(f.what.destination) + " that goes in a circle");
  if (f.what.destination != self) ++f.what.hops;
  f.payload = r.take_rest();
  return f;
}

}  // namespace strata::cluster
