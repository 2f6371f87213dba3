// SPDX-License-Identifier: Apache-2.0
// Over what two nodes talk directly: the memory of their host, or a network that both are on, the
// fastest by its kind and by what their interfaces say unless another one was measured and is much
// better; and what that costs, as measured where it was. Every node finds the same, since all know
// where everybody listens and what was measured.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cluster/ways/joined_hosts.hpp"
#include "cluster/ways/link_costs.hpp"
#include "launch/job.hpp"
#include "net/transport.hpp"
#include "net/wire.hpp"

namespace strata::cluster {

using net::node_id;

// Over which networks a transport reaches the nodes that were there when it was made, by node.
struct on_networks {
  const net::transport* over;
  std::vector<std::optional<std::uint16_t>> by_node;
};

// Of these, which are in order, the first of each host.
[[nodiscard]] std::vector<node_id> firsts_of_hosts(
    const std::vector<node_id>& nodes, const std::function<std::uint16_t(node_id)>& host);

class reach {
 public:
  // by_memory: nodes of one host share some. Networks: those that the user has named, or that were
  // found, of these kinds; two nodes may have none in common. None: everybody reaches everybody.
  reach(const launch::job_description& job, bool by_memory, std::vector<network_kind> networks);

  // Where a node listens, and on which host it is.
  void set(node_id node, std::uint16_t host, launch::address where);
  // All of it but its host.
  void forget(node_id node);
  // Two nodes could not connect over a network that they share. They try no more than two, so when
  // both are closed they do not reach each other.
  void close(const launch::closed_link& c) { closed_[{c.lower, c.higher}].push_back(c.network); }
  // Which hosts they join; before: all whose nodes listen on them.
  void set_joined(joined_hosts joins) { joins_ = std::move(joins); }
  // What the networks cost. Before: nominal.
  void set_costs(link_costs measured) { measured_ = std::move(measured); }

  [[nodiscard]] bool by_networks() const noexcept { return !networks_.empty(); }
  [[nodiscard]] bool shares_memory(node_id a, node_id b) const;
  // Where `from` finds `to` over the network that they use; neither port nor worker: on none.
  [[nodiscard]] launch::address towards(node_id from, node_id to) const;
  // The same for a spare connection, over the next best network.
  [[nodiscard]] launch::address spare_towards(node_id from, node_id to) const;
  // Where `to` is found over that network, on which it is, when a connection is made again.
  [[nodiscard]] launch::address reopened_at(node_id to, std::uint16_t network) const {
    const launch::address::door& d = places_[to].where.doors.at(network);
    return {d.host, d.spare_port, {}};
  }
  // The network that they use, by its place in the user's list; none: memory, or they share none.
  [[nodiscard]] std::optional<std::uint16_t> network(node_id a, node_id b) const;
  [[nodiscard]] std::optional<std::uint16_t> spare_network(node_id a, node_id b) const;
  // None: they do not reach each other. See routes.
  [[nodiscard]] std::optional<link> cost(node_id a, node_id b) const;
  // The nodes whose networks `self` measures: of the first nodes of any two hosts one measures for
  // all of them, so that it takes as long with many nodes on each. Only those `count` for which it
  // says so.
  [[nodiscard]] std::vector<node_id> measured_by(
      node_id self, const std::function<bool(node_id)>& count = [](node_id) { return true; }) const;
  // Also of those that had left before this node came: what was measured with them is still told
  // of their hosts. Of one that was never heard of: 0.
  [[nodiscard]] std::uint16_t host(node_id n) const { return places_[n].host; }

 private:
  struct place {
    bool known = false;
    std::uint16_t host = 0;
    launch::address where{};
  };
  struct shared_network;
  [[nodiscard]] std::span<const std::uint16_t> closed_between(node_id a, node_id b) const;
  // The cheapest one, of equal ones the first; of those for which `counts` says so.
  template <class F>
  [[nodiscard]] shared_network cheapest(node_id a, node_id b, F counts) const;
  [[nodiscard]] shared_network used_by(node_id a, node_id b) const;
  [[nodiscard]] shared_network spare_of(node_id a, node_id b) const;

  const bool by_memory_;
  const std::vector<network_kind> networks_;
  std::vector<place> places_;
  joined_hosts joins_;
  link_costs measured_;
  std::map<std::pair<node_id, node_id>, std::vector<std::uint16_t>> closed_;  // lower number first
};

}  // namespace strata::cluster
