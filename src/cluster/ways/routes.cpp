// SPDX-License-Identifier: Apache-2.0
#include "cluster/ways/routes.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace strata::cluster {

namespace {

std::vector<bool> the_first(node_id founders, node_id nodes) {
  std::vector<bool> forward(nodes);
  std::fill_n(forward.begin(), std::min(founders, nodes), true);
  return forward;
}

}  // namespace

routes::routes(node_id self, node_id nodes, node_id founders, const link_cost& cost)
    : routes(self, nodes, the_first(founders, nodes), cost) {}

routes::routes(node_id self, node_id nodes, std::vector<bool> forward, const link_cost& cost)
    : self_(self),
      nodes_(nodes),
      forward_(std::move(forward)),
      ways_(nodes, way{self, 0, std::numeric_limits<std::int64_t>::max()}) {
  ways_[self].cost_ns = 0;
  ways_[self].bytes_per_s = link::unlimited;
  std::vector<bool> settled(nodes, false);
  for (;;) {
    // The cheapest that is not settled; of equal ones the first, the same on every run.
    std::optional<node_id> nearest;
    for (unsigned n = 0; n < nodes; ++n) {
      const bool reached = n == self || ways_[n].hops != 0;
      if (reached && !settled[n] && (!nearest || ways_[n].cost_ns < ways_[*nearest].cost_ns))
        nearest = static_cast<node_id>(n);
    }
    if (!nearest) break;
    settled[*nearest] = true;
    if (*nearest != self && !forward_[*nearest]) continue;
    const way by = ways_[*nearest];
    for (unsigned n = 0; n < nodes; ++n) {
      if (settled[n]) continue;
      const auto last = cost(*nearest, static_cast<node_id>(n));
      if (!last || by.cost_ns + last->cost_ns >= ways_[n].cost_ns) continue;
      ways_[n] = {*nearest == self ? static_cast<node_id>(n) : by.next,
                  static_cast<std::uint16_t>(by.hops + 1), by.cost_ns + last->cost_ns,
                  by.latency_ns + last->latency_ns, std::min(by.bytes_per_s, last->bytes_per_s)};
    }
  }
  find_out_whether_gateway(cost);
}

void routes::find_out_whether_gateway(const link_cost& cost) {
  is_gateway_ = false;
  if (forward_.empty() || !forward_[self_]) return;
  std::vector<node_id> neighbours;
  for (unsigned n = 0; n < nodes_; ++n) {
    if (n != self_ && cost(self_, static_cast<node_id>(n)))
      neighbours.push_back(static_cast<node_id>(n));
  }
  for (std::size_t i = 0; i < neighbours.size() && !is_gateway_; ++i) {
    for (std::size_t j = 0; j < i && !is_gateway_; ++j) {
      // Those who are neighbours may still do better by us.
      const auto direct = cost(neighbours[i], neighbours[j]);
      is_gateway_ =
          !direct || cost(self_, neighbours[i])->cost_ns + cost(self_, neighbours[j])->cost_ns <
                         direct->cost_ns;
    }
  }
}

void routes::add(node_id node, const link_cost& cost) {
  const routes anew(self_, nodes_, forward_, cost);
  ways_[node] = anew.ways_[node];
  is_gateway_ = anew.is_gateway_;
}

std::optional<node_id> routes::unreachable(node_id nodes, std::span<const node_id> left) const {
  for (unsigned n = 0; n < std::min<std::size_t>(ways_.size(), nodes); ++n) {
    const bool has_left = std::find(left.begin(), left.end(), n) != left.end();
    if (n != self_ && !has_left && ways_[n].hops == 0) return static_cast<node_id>(n);
  }
  return std::nullopt;
}

}  // namespace strata::cluster
