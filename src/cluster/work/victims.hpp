// SPDX-License-Identifier: Apache-2.0
// Which node is asked for tokens next, or sent some unasked: with balancing::informed who had most
// to do when last heard of, else one at random, those of this host first.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/prng.hpp"
#include "cluster/words/membership.hpp"

namespace strata::cluster {

class victims {
 public:
  // `nodes`: numbers that one can have. The members live longer.
  victims(const membership& members, node_id nodes, bool by_loads, std::uint64_t seed)
      : members_(members), by_loads_(by_loads), random_(seed), loads_(nodes) {}

  // The next so many choices are of this host, as far as it has other nodes.
  void prefer_near(unsigned choices) noexcept {
    near_left_ = std::min<unsigned>(choices, members_.nears());
  }
  // What the node has said that it has to do.
  void heard_of(node_id n, std::uint32_t load) { loads_[n] = load; }

  // This node: there is no other one that works.
  [[nodiscard]] node_id next();

 private:
  const membership& members_;
  const bool by_loads_;
  prng random_;
  unsigned near_left_ = 0;
  std::vector<std::uint32_t> loads_;  // by node
};

}  // namespace strata::cluster
