// SPDX-License-Identifier: Apache-2.0
// balancing::sender: to whom a node with work to spare sends some unasked, and when.
//
// To others at random, but for those that have had some just now, and those that have lately shown
// that they have enough themselves: tokens say how much waits where they come from. Source of the
// threshold: D. L. Eager, E. D. Lazowska, J. Zahorjan, "Adaptive load sharing in homogeneous
// distributed systems", 1986 (doi:10.1109/TSE.1986.6312961), whose senders probe who might have
// enough; ours hear of it from what they are sent.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/prng.hpp"
#include "cluster/words/membership.hpp"

namespace strata::cluster {

class unasked {
 public:
  // `nodes`: numbers that one can have. The members live longer.
  unasked(const membership& members, node_id nodes, std::uint64_t seed)
      : members_(members), random_(seed), not_before_ns_(nodes) {}

  // So much waits on that node.
  void heard_of(node_id node, std::uint32_t load, std::int64_t now_ns);
  // Whom something is sent now; nobody: none for whom it is time.
  [[nodiscard]] std::optional<node_id> next(std::int64_t now_ns);

 private:
  const membership& members_;
  prng random_;
  std::int64_t next_ns_ = 0;                 // for anybody
  std::vector<std::int64_t> not_before_ns_;  // by node
};

}  // namespace strata::cluster
