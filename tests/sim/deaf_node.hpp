// SPDX-License-Identifier: Apache-2.0
// A node that handles nothing for a while, and goes on beating: its thread for messages waits for a
// lock, or for its turn on a core.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cluster/words/message_copy.hpp"
#include "sim/simulated_job.hpp"

namespace strata::test {

class deaf_node {
 public:
  deaf_node(sim::job& j, net::node_id n) : world_(j.in), node_(j.node(n)) {
    node_.hears = [this](net::node_id from, cluster::kind k, std::span<const std::byte> payload) {
      if (is_deaf_) unheard_.emplace_back(from, cluster::copy_of(k, payload, {}));
      return is_deaf_;
    };
  }

  void be_deaf_for(std::int64_t ns) {
    is_deaf_ = true;
    world_.at(world_.now_ns() + ns, [this] {
      is_deaf_ = false;
      for (const auto& [from, m] : std::exchange(unheard_, {})) node_.handle(from, m.k, m.payload);
    });
  }

 private:
  sim::world& world_;
  sim::simulated_node& node_;
  bool is_deaf_ = false;
  std::vector<std::pair<net::node_id, cluster::message_copy>> unheard_;
};

}  // namespace strata::test
