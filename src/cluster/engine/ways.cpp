// SPDX-License-Identifier: Apache-2.0
// Other ways between the nodes of the running job: what the engine does about them.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "cluster/engine/engine.hpp"
#include "cluster/ways/told_route.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

constexpr auto change_limit = std::chrono::seconds(2);

}  // namespace

routes::way engine::find_way(node_id node) const {
  return networks_ != nullptr ? networks_->rerouting().to(node) : ways_.to(node);
}

void engine::on_changed(const way_plan& p) {
  if (members_.is_elastic()) {
    const writer packed = pack(p);
    line_->tell_plan({reinterpret_cast<const char*>(packed.bytes().data()), packed.size()});
  }
  departures_.look_again();
}

void engine::let_come(node_id n) { line_->say(launch::word_to_launcher::admitted, n); }

// ---- what programs are told ----

std::string engine::network_over(const net::transport* over, node_id neighbour) const {
  for (const on_networks& one : on_networks_) {
    if (one.over != over || neighbour >= one.by_node.size()) continue;
    if (const auto network = one.by_node[neighbour]) return network_names_.at(*network);
  }
  return {};
}

std::optional<route> engine::find_route(node_id node) const {
  if (node == self_) return route{.next = node};
  const routes::way w = find_way(node);
  const net::transport* const first = links_->way_to(w.next);
  if (first == nullptr) return std::nullopt;
  bool is_near = false;
  for (unsigned i = 0; i < members_.nears(); ++i) is_near = is_near || members_.near(i) == w.next;
  const auto* const memory = nearby();
  route r = told_route(w,
                       memory != nullptr && memory->get() == first ? first_hop::memory
                       : is_near                                   ? first_hop::within_host
                                                                   : first_hop::network,
                       first->about().name);
  r.network = network_over(first, w.next);
  return r;
}

route engine::way_to(std::uint16_t node) const {
  if (const auto found = find_route(node)) return *found;
  throw misuse_error("no way leads to node " + std::to_string(node) + ", which is not there");
}

std::vector<std::int64_t> engine::costs_from(std::uint16_t from) {
  constexpr std::int64_t none = -1;
  const auto is_there = [this](unsigned n) {
    return n == self_ || members_.has(static_cast<node_id>(n));
  };
  if (from >= nodes_ || !is_there(from)) return {};
  std::vector<std::int64_t> all(nodes_, none);
  if (from == self_) {
    for (unsigned n = 0; n < nodes_; ++n) {
      if (!is_there(n)) continue;  // its way may just be written
      if (const auto r = find_route(static_cast<node_id>(n))) all[n] = r->cost_ns;
    }
  } else {
    all = costs_between_others(from);
  }
  for (unsigned n = 0; n < nodes_; ++n) {
    if (!is_there(n)) all[n] = none;
  }
  return all;
}

// From what all know. A node whose memory others cannot have counts as if it shared it.
std::vector<std::int64_t> engine::costs_between_others(node_id from) {
  const std::lock_guard handling(inbox_);
  const bool by_memory = uses_memory(line_->job().transport);
  routes ways(from, nodes_);
  if (who_->by_networks()) {
    const way_plan plan = networks_ != nullptr
                              ? networks_->rerouting().plan()
                              : first_plan(static_cast<node_id>(members_.founders()));
    ways = plan.ways(from, nodes_, [this](node_id a, node_id b) { return who_->cost(a, b); });
  }
  std::vector<std::int64_t> all;
  for (unsigned n = 0; n < nodes_; ++n) {
    const routes::way w = ways.to(static_cast<node_id>(n));
    const first_hop first = who_->host(from) != who_->host(w.next) ? first_hop::network
                            : by_memory                            ? first_hop::memory
                                                                   : first_hop::within_host;
    all.push_back(n == from ? 0 : w.hops == 0 ? -1 : told_route(w, first, "").cost_ns);
  }
  return all;
}

// ---- what is due ----

std::int64_t engine::look_after_networks() {
  if (networks_ == nullptr) return INT64_MAX;
  const std::lock_guard handling(inbox_);
  const std::int64_t now = now_ns();
  const std::int64_t next = std::min(networks_->measure(now), networks_->mend(now));
  return next == INT64_MAX ? next : std::max<std::int64_t>(next - now, 0);
}

// Before node 0 ends the job: whoever ends while ways change may be the one by whom something is
// still under way.
void engine::wait_for_ways() {
  if (networks_ == nullptr) return;
  {
    const std::lock_guard handling(inbox_);
    networks_->stop();
  }
  departures_.wait_for(change_limit, [this](const departures::known&) {
    return broken_.load(std::memory_order_seq_cst) || !networks_->rerouting().is_changing();
  });
}

}  // namespace strata::cluster
