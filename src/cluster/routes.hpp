// SPDX-License-Identifier: Apache-2.0
// By which neighbour a node reaches every other one: the cheapest way over nodes that share a
// network. (Requirement P12.)
//
// All nodes compute this from the same costs. A way's rest is the cheapest way of the node that is
// next on it, so its cost falls from node to node, and no message can go in a circle. Source: E. W.
// Dijkstra, "A note on two problems in connexion with graphs", 1959.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "net/wire.hpp"

namespace strata::cluster {

using net::node_id;

class routes {
 public:
  // What a small message between two nodes costs, in ns; none: they share no network. The same for
  // (a, b) and (b, a), and on every node.
  using link_cost = std::function<std::optional<std::int64_t>(node_id a, node_id b)>;

  routes(node_id self, node_id nodes, const link_cost& cost);
  // Every node is a neighbour.
  routes(node_id self, node_id nodes) noexcept : self_(self), nodes_(nodes) {}

  struct way {
    node_id next;          // the neighbour that it begins with
    std::uint16_t hops;    // 1: a neighbour; 0: there is none
    std::int64_t cost_ns;  // of all of it
  };
  [[nodiscard]] way to(node_id node) const noexcept {
    if (!ways_.empty()) return ways_[node];
    return {node, static_cast<std::uint16_t>(node != self_ ? 1 : 0), 0};
  }
  [[nodiscard]] bool is_neighbour(node_id node) const noexcept { return to(node).hops == 1; }
  [[nodiscard]] node_id nodes() const noexcept { return nodes_; }
  // The first node that no way leads to.
  [[nodiscard]] std::optional<node_id> unreachable() const noexcept;
  // Others may have to reach each other by this node.
  [[nodiscard]] bool is_gateway() const noexcept { return is_gateway_; }

 private:
  node_id self_;
  node_id nodes_;
  std::vector<way> ways_;  // empty: every node is a neighbour
  bool is_gateway_ = false;
};

}  // namespace strata::cluster
