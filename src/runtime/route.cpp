// SPDX-License-Identifier: Apache-2.0
#include "strata/route.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "sched/scheduler.hpp"
#include "strata/error.hpp"
#include "strata/membership.hpp"

namespace strata {

route route_to(node_id_t node) {
  const detail::worker& here = detail::this_worker();
  if (here.owner == nullptr) throw misuse_error("route_to() outside a runtime");
  const unsigned nodes = num_nodes();
  if (node >= nodes)
    throw misuse_error("route_to(" + std::to_string(node) + "): this job has " +
                       std::to_string(nodes) + " nodes");
  const detail::uninterrupted guard;  // others of this worker ask, too: what is known has locks
  if (const detail::scheduler::visit n(*here.owner); n) return n->way_to(node);
  return {.next = node};
}

node_id_t nearest_node(node_id_t to, std::span<const node_id_t> among) {
  const detail::worker& here = detail::this_worker();
  if (here.owner == nullptr) throw misuse_error("nearest_node() outside a runtime");
  const detail::uninterrupted guard;  // as above
  std::vector<std::int64_t> costs;
  if (const detail::scheduler::visit n(*here.owner); n)
    costs = n->costs_from(to);
  else if (to == here.node)
    costs.assign(to + std::size_t{1}, 0);
  const auto is_there = [&](node_id_t node) { return node < costs.size() && costs[node] >= 0; };
  if (!is_there(to))
    throw misuse_error("nearest_node(): node " + std::to_string(to) + " is not there");
  const node_id_t* nearest = nullptr;
  for (const node_id_t& node : among) {
    if (is_there(node) && (nearest == nullptr || costs[node] < costs[*nearest])) nearest = &node;
  }
  if (nearest == nullptr)
    throw misuse_error("nearest_node(): none of the " + std::to_string(among.size()) +
                       " nodes to choose from is there");
  return *nearest;
}

bool is_member(node_id_t node) noexcept {
  const detail::worker& here = detail::this_worker();
  if (here.owner != nullptr) {
    if (const detail::scheduler::visit n(*here.owner); n) return n->is_member(node);
  }
  return node == 0;
}

std::vector<node_id_t> members() {
  std::vector<node_id_t> all;
  const node_id_t self = detail::this_worker().node;
  for (unsigned n = 0; n < num_nodes(); ++n) {
    const auto node = static_cast<node_id_t>(n);
    if (node == self || is_member(node)) all.push_back(node);
  }
  return all;
}

}  // namespace strata
