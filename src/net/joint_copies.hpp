// SPDX-License-Identifier: Apache-2.0
// Blocks that two nodes copy together because both reach the memory of each other: where they agree
// about it. A capability of a transport.
#pragma once
#include <atomic>

#include "net/joint_copy.hpp"
#include "net/wire.hpp"

namespace strata::net {

class joint_copies {
 public:
  using copy = joint_copy<std::atomic>;
  static constexpr unsigned copies_each = 4;

  // So many, which `node` owns; of this node or of a peer. Null: we do not share any.
  [[nodiscard]] virtual copy* copies_of(node_id node) noexcept = 0;
  // Somebody at that peer does nothing but look for messages, as far as one can see.
  [[nodiscard]] virtual bool is_attended(node_id peer) const noexcept = 0;

 protected:
  ~joint_copies() = default;
};

}  // namespace strata::net
