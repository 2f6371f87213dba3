// SPDX-License-Identifier: Apache-2.0
// Over what two nodes talk directly: the memory of their host, or the cheapest network that both
// are on. Every node finds the same, since all know where everybody listens.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "launch/job.hpp"
#include "net/wire.hpp"

namespace strata::cluster {

using net::node_id;

class reach {
 public:
  // by_memory: nodes of one host share some. by_networks: the user has named the networks, and two
  // nodes may have none in common; else everybody reaches everybody.
  reach(const launch::job_description& job, bool by_memory, bool by_networks);

  // Where a node listens, and on which host it is.
  void set(node_id node, std::uint16_t host, launch::address where);
  void forget(node_id node);

  [[nodiscard]] bool by_networks() const noexcept { return by_networks_; }
  [[nodiscard]] bool shares_memory(node_id a, node_id b) const;
  // Where `from` finds `to` over the network that they use; port 0: on none.
  [[nodiscard]] launch::address towards(node_id from, node_id to) const;
  // Nominal, in ns, of a message of 4 KiB; none: they do not reach each other. See routes.
  [[nodiscard]] std::optional<std::int64_t> cost(node_id a, node_id b) const;

 private:
  struct place {
    bool known = false;
    std::uint16_t host = 0;
    launch::address where{};
  };
  const bool by_memory_, by_networks_;
  std::vector<place> places_;
};

}  // namespace strata::cluster
