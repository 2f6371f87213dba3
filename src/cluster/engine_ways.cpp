// SPDX-License-Identifier: Apache-2.0
// Other ways between the nodes of the running job: what the engine does about them.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "cluster/engine.hpp"
#include "cluster/link_costs.hpp"
#include "cluster/told_route.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

constexpr auto change_limit = std::chrono::seconds(2);
// While the last that goes by a detour has no room there.
constexpr std::int64_t begin_anew_every_ns = 5'000'000;

}  // namespace

routes::way engine::find_way(node_id node) const {
  return rerouting_ != nullptr ? rerouting_->to(node) : ways_.to(node);
}

// As it has connected.
void engine::begin_to_reroute(const way_plan& p) {
  rerouting_ = std::make_unique<rerouting>(*this, p, *this);
  for (unsigned n = 0; n < nodes_; ++n) {
    const auto node = static_cast<node_id>(n);
    if (node != self_) links_->change_way(node, find_way(node).next, p.number, {});
  }
  detours_ = std::make_unique<detours>(self_, nodes_, p.about_connections, *this);
  believed_costs costs([this](node_id n) { return who_->host(n); });
  for (std::size_t n = 0; n < told_.size(); ++n) {
    for (const launch::measured_link& m : told_[n]) costs.begin_with({static_cast<node_id>(n), m});
  }
  remeasuring_ =
      std::make_unique<remeasuring>(*this, *this, std::move(costs),
                                    std::int64_t{settings_.remeasure_s} * 1'000'000'000, now_ns());
}

routes engine::ways_by(const way_plan& p) {
  if (p.measured != told_since_) {
    const std::vector<std::uint16_t> hosts = who_->hosts();
    try {
      who_->set_costs({with_newer(told_, p.measured, hosts), hosts});
    } catch (const error& e) {
      throw malformed(e.what());
    }
    told_since_ = p.measured;
  }
  return p.ways(self_, nodes_, [this](node_id a, node_id b) { return who_->cost(a, b); });
}

// A comer's connection may be on its way from the porter.
bool engine::has_connections_for(const routes& ways) {
  const std::vector<node_id> all = members_.all();
  return std::none_of(all.begin(), all.end(), [&](node_id n) {
    return n != self_ && ways.is_neighbour(n) && links_->way_to(n) == nullptr;
  });
}

void engine::change_way(node_id n, node_id next, std::uint32_t table, bool says_so) {
  links_->change_way(n, next, table,
                     says_so ? std::as_bytes(std::span(&table, 1)) : std::span<const std::byte>{});
}

void engine::on_kept(node_id n, kind k, std::span<const std::byte> payload) {
  receive(n, k, payload);
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
    const way_plan plan = rerouting_ != nullptr
                              ? rerouting_->plan()
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

// ---- what the networks cost ----

std::vector<node_id> engine::measured_here() {
  return who_->measured_by(self_,
                           [this](node_id n) { return members_.has(n) && !detours_->is_cut(n); });
}

std::optional<std::uint16_t> engine::network_to(node_id n) {
  return members_.has(n) ? who_->network(self_, n) : std::nullopt;
}

void engine::on_costs(std::vector<way_plan::measurement> changed) {
  const std::vector<std::uint16_t> hosts = who_->hosts();
  try {
    (void)link_costs(with_newer(told_, changed, hosts), hosts);
  } catch (const error&) {
    return;  // more hosts than are measured
  }
  rerouting_->set_costs(std::move(changed));
}

std::int64_t engine::look_after_networks() {
  if (remeasuring_ == nullptr) return INT64_MAX;
  const std::lock_guard handling(inbox_);
  const std::int64_t now = now_ns();
  std::int64_t next = remeasuring_->on_time(now);
  if (mending_ != nullptr && !is_over()) {
    next = std::min(next, mending_->on_time(now));
    if (detours_->try_to_begin_anew()) next = std::min(next, now + begin_anew_every_ns);
  }
  return next == INT64_MAX ? next : std::max<std::int64_t>(next - now, 0);
}

// Before node 0 ends the job: whoever ends while ways change may be the one by whom something is
// still under way.
void engine::wait_for_ways() {
  if (rerouting_ == nullptr) return;
  {
    const std::lock_guard handling(inbox_);
    remeasuring_->stop();
    rerouting_->stop();
  }
  departures_.wait_for(change_limit, [this](const departures::known&) {
    return broken_.load(std::memory_order_seq_cst) || !rerouting_->is_changing();
  });
}

}  // namespace strata::cluster
