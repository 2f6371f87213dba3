// SPDX-License-Identifier: Apache-2.0
// Connections that end: what the engine does about them.
#include <string>

#include "cluster/engine.hpp"

namespace strata::cluster {

// Where networks were named, and a node lives, what is said to it goes on. When the job ends, or a
// node leaves, a connection that was measured, and found so slow that what goes there goes by
// others, may end before their last words come.
void engine::on_lost(node_id peer, const std::string& why) {
  if (comes_by_spare(peer)) {
    if (!is_over()) detours_->on_spare_broken(peer);
    return;
  }
  if (lives_on(peer)) return detours_->on_broken(peer, why);
  const bool is_used =
      rerouting_ != nullptr ? rerouting_->goes_directly_to(peer) : ways_.to(peer).next == peer;
  if (is_used) cannot_reach(peer, why);
}

bool engine::comes_by_spare(node_id peer) const {
  return links_->has_spare(peer) && polled_ != links_->way_to(peer);
}

bool engine::lives_on(node_id peer) {
  if (detours_ == nullptr || !links_->outlives_connection(peer) || !members_.has(peer) ||
      is_over() || roster_->has_left())
    return false;
  return !departures_.has_gone(peer);
}

bool engine::is_connected(node_id n) {
  return n != self_ && members_.of(n) != standing::absent && links_->way_to(n) != nullptr;
}

void engine::on_detoured(node_id n, kind k, std::span<const std::byte> payload) {
  if (!rerouting_->keeps(n, {}, k, payload)) receive(n, k, payload);
}

routes engine::ways_without(node_id n, const std::set<detours::pair>& cuts) {
  way_plan p = rerouting_->plan();
  // What is known of connections may be newer than the plan.
  p.about_connections.clear();
  for (const detours::pair& ends : cuts) p.about_connections[ends] = 1;
  return p.ways(n, nodes_, [this](node_id a, node_id b) { return who_->cost(a, b); });
}

void engine::on_word(const detours::pair& ends, std::uint32_t number) {
  if (self_ == 0) rerouting_->on_word(ends, number);
}

void engine::look_after_connections(bool listening) {
  detours_->beat();
  const links::trouble found = links_->confirm_all(listening);
  for (const node_id n : found.silent) detours_->on_silent(n);
  for (const node_id n : found.too_far) lose(n, "is reached by detours within detours only");
}

}  // namespace strata::cluster
