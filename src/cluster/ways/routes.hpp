// SPDX-License-Identifier: Apache-2.0
// By which neighbour a node reaches every other one: the cheapest way over nodes that share a
// network. (Requirement P12.)
//
// All nodes compute this from the same costs. A way's rest is the cheapest way of the node that is
// next on it, so its cost falls from node to node, and no message can go in a circle. Source: E. W.
// Dijkstra, "A note on two problems in connexion with graphs", 1959.
//
// Not all need forward: those that do not are ends of ways only. So no way between two others
// changes when one of these comes.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "cluster/ways/link.hpp"
#include "net/wire.hpp"

namespace strata::cluster {

using net::node_id;

class routes {
 public:
  // None: they share no network. The same for (a, b) and (b, a), and on every node.
  using link_cost = std::function<std::optional<link>(node_id a, node_id b)>;

  // Only those `forward` for which it says so, by node.
  routes(node_id self, node_id nodes, std::vector<bool> forward, const link_cost& cost);
  // Only the first `founders` nodes do.
  routes(node_id self, node_id nodes, node_id founders, const link_cost& cost);
  routes(node_id self, node_id nodes, const link_cost& cost) : routes(self, nodes, nodes, cost) {}
  // Every node is a neighbour.
  routes(node_id self, node_id nodes) noexcept : self_(self), nodes_(nodes) {}

  // A node has come: the way there, with the costs of its links. Before anybody asks for it.
  void add(node_id node, const link_cost& cost);

  struct way {
    node_id next;          // the neighbour that it begins with
    std::uint16_t hops;    // 1: a neighbour; 0: there is none
    std::int64_t cost_ns;  // of all of it
    // As measured: of all of it, and of the narrowest part of it. See link.
    std::int64_t latency_ns = 0;
    std::int64_t bytes_per_s = 0;
  };
  [[nodiscard]] way to(node_id node) const noexcept {
    if (!ways_.empty()) return ways_[node];
    return {node, static_cast<std::uint16_t>(node != self_ ? 1 : 0), 0};
  }
  [[nodiscard]] bool is_neighbour(node_id node) const noexcept { return to(node).hops == 1; }
  [[nodiscard]] node_id nodes() const noexcept { return nodes_; }
  // The first of the first `nodes` nodes that no way leads to, and that has not `left`.
  [[nodiscard]] std::optional<node_id> unreachable(node_id nodes,
                                                   std::span<const node_id> left = {}) const;
  // Others may have to reach each other by this node.
  [[nodiscard]] bool is_gateway() const noexcept { return is_gateway_; }

 private:
  void find_out_whether_gateway(const link_cost& cost);

  node_id self_;
  node_id nodes_;
  std::vector<bool> forward_;  // by node; empty: all are neighbours
  std::vector<way> ways_;      // empty: every node is a neighbour
  bool is_gateway_ = false;
};

}  // namespace strata::cluster
