// SPDX-License-Identifier: Apache-2.0
#include "cluster/ways/reach.hpp"

#include <algorithm>
#include <utility>

#include "cluster/ways/survey.hpp"

namespace strata::cluster {
namespace {

bool is_open(const launch::address::door& d) { return d.port != 0 || !d.worker.empty(); }

std::int64_t cost_over(network_kind k, const launch::address::door& a,
                       const launch::address::door& b) {
  const nominal_link nominal = nominal_of(k);
  const auto rate = [&](const launch::address::door& d) {
    return d.megabits != 0 ? std::int64_t{d.megabits} : nominal.bytes_per_s * 8 / 1'000'000;
  };
  return nominal.latency_ns + typical_bytes * 8 * 1000 / std::min(rate(a), rate(b));
}

}  // namespace

std::vector<node_id> firsts_of_hosts(const std::vector<node_id>& nodes,
                                     const std::function<std::uint16_t(node_id)>& host) {
  std::vector<node_id> firsts;
  for (const node_id n : nodes) {
    if (std::none_of(firsts.begin(), firsts.end(), [&](node_id f) { return host(f) == host(n); }))
      firsts.push_back(n);
  }
  return firsts;
}

// Of two nodes. `other`: where the second one listens on it; null: there is none.
struct reach::shared_network {
  const launch::address::door* other = nullptr;
  std::int64_t cost_ns = 0;  // nominal
  std::uint16_t number = 0;
};

template <class F>
reach::shared_network reach::cheapest(node_id a, node_id b, F counts) const {
  const std::vector<launch::address::door>& ours = places_[a].where.doors;
  const std::vector<launch::address::door>& theirs = places_[b].where.doors;
  shared_network best;
  for (std::size_t i = 0; i < std::min({networks_.size(), ours.size(), theirs.size()}); ++i) {
    const auto number = static_cast<std::uint16_t>(i);
    if (!is_open(ours[i]) || !is_open(theirs[i]) || !counts(number)) continue;
    if (!joins_.are_joined(places_[a].host, places_[b].host, number)) continue;
    const std::int64_t cost = cost_over(networks_[i], ours[i], theirs[i]);
    if (best.other == nullptr || cost < best.cost_ns) best = {&theirs[i], cost, number};
  }
  return best;
}

std::span<const std::uint16_t> reach::closed_between(node_id a, node_id b) const {
  const auto found = closed_.find(std::minmax(a, b));
  return found != closed_.end() ? std::span<const std::uint16_t>(found->second)
                                : std::span<const std::uint16_t>();
}

reach::shared_network reach::used_by(node_id a, node_id b) const {
  const place& x = places_[a];
  const place& y = places_[b];
  const std::span<const std::uint16_t> closed = closed_between(a, b);
  if (closed.size() > 1) return {};
  const auto is_usable = [&](std::uint16_t n) { return closed.empty() || closed[0] != n; };
  if (const auto best = measured_.network(x.host, y.host)) {
    const auto measured =
        cheapest(a, b, [&](std::uint16_t n) { return n == *best && is_usable(n); });
    if (measured.other != nullptr) return measured;
  }
  return cheapest(a, b, is_usable);
}

reach::shared_network reach::spare_of(node_id a, node_id b) const {
  const std::uint16_t used = used_by(a, b).number;
  return cheapest(a, b, [&](std::uint16_t n) { return n != used; });
}

reach::reach(const launch::job_description& job, bool by_memory, std::vector<network_kind> networks)
    : by_memory_(by_memory), networks_(std::move(networks)), places_(job.capacity) {
  for (std::size_t n = 0; n < job.host_of.size(); ++n) places_.at(n).host = job.host_of[n];
}

void reach::set(node_id node, std::uint16_t host, launch::address where) {
  places_[node] = {true, host, std::move(where)};
}

void reach::forget(node_id node) { places_[node] = {.host = places_[node].host}; }

bool reach::shares_memory(node_id a, node_id b) const {
  const place& x = places_[a];
  const place& y = places_[b];
  return by_memory_ && x.known && y.known && x.host == y.host;
}

launch::address reach::towards(node_id from, node_id to) const {
  if (from == to || !places_[to].known || shares_memory(from, to)) return {};
  if (!by_networks()) return places_[to].where;
  const shared_network shared = used_by(from, to);
  if (shared.other == nullptr) return {};
  return {shared.other->host, shared.other->port, shared.other->worker};
}

launch::address reach::spare_towards(node_id from, node_id to) const {
  if (!spare_network(from, to)) return {};
  const shared_network spare = spare_of(from, to);
  return {spare.other->host, spare.other->spare_port, spare.other->spare_worker};
}

std::optional<std::uint16_t> reach::network(node_id a, node_id b) const {
  if (!by_networks() || shares_memory(a, b)) return std::nullopt;
  const shared_network shared = used_by(a, b);
  return shared.other != nullptr ? std::optional(shared.number) : std::nullopt;
}

std::optional<std::uint16_t> reach::spare_network(node_id a, node_id b) const {
  if (a == b || !network(a, b)) return std::nullopt;
  const shared_network spare = spare_of(a, b);
  return spare.other != nullptr ? std::optional(spare.number) : std::nullopt;
}

std::optional<link> reach::cost(node_id a, node_id b) const {
  const place& x = places_[a];
  const place& y = places_[b];
  if (!x.known || !y.known) return std::nullopt;
  if (shares_memory(a, b)) return link(nominal_memory.cost_ns(), 0, link::unlimited);
  if (!by_networks()) return link(nominal_network.cost_ns());
  const shared_network shared = used_by(a, b);
  if (shared.other == nullptr) return std::nullopt;
  if (const auto measured = measured_.between(x.host, y.host, shared.number)) return measured;
  return link(std::max(shared.cost_ns, measured_.dearest_ns(shared.number)),
              nominal_of(networks_[shared.number]).latency_ns);
}

std::vector<node_id> reach::measured_by(node_id self,
                                        const std::function<bool(node_id)>& count) const {
  std::vector<node_id> counted, all;
  for (unsigned n = 0; n < places_.size(); ++n) {
    if (places_[n].known && count(static_cast<node_id>(n)))
      counted.push_back(static_cast<node_id>(n));
  }
  std::vector<node_id> firsts = firsts_of_hosts(counted, [this](node_id n) { return host(n); });
  const auto me = std::find(firsts.begin(), firsts.end(), self);
  if (!by_networks() || me == firsts.end() || firsts.size() > link_costs::hosts_max) return all;
  // Beginning with the next one: not all with the same.
  std::rotate(firsts.begin(), me, firsts.end());
  for (const node_id n : firsts) {
    const auto by = network(self, n);
    if (measures(self, n) && by && *by < launch::measured_link::networks_max) all.push_back(n);
  }
  return all;
}

}  // namespace strata::cluster
