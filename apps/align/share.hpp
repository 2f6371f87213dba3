// SPDX-License-Identifier: Apache-2.0
// Which strips of a sweep are a node's.
#pragma once

#include <algorithm>

namespace align {

/// The strips are cut into groups of neighbours, as equal as can be, and dealt to the nodes in
/// turn. One group per node costs the fewest borders on the way. Node k starts when the node above
/// has gone down its group in the first block: if there are few blocks, more and smaller groups
/// shorten that.
class share {
 public:
  /// `from_behind`: the last node takes the first group. Of two sweeps that run at the same time
  /// one does so; then each node waits for one while it works on the other.
  share(int strips, int blocks, int nodes, int node, bool from_behind)
      : strips_(strips),
        nodes_(nodes),
        place_(from_behind ? nodes - 1 - node : node),
        groups_(std::min(strips, nodes * rounds(strips, blocks, nodes))) {}

  [[nodiscard]] int groups() const { return groups_; }
  [[nodiscard]] bool owns(int strip) const { return group_of(strip) % nodes_ == place_; }
  [[nodiscard]] bool begins_group(int strip) const { return strip == begin_of(group_of(strip)); }
  [[nodiscard]] bool ends_group(int strip) const {
    return strip + 1 == begin_of(group_of(strip) + 1);
  }
  /// The last strip of this node's group before the one that begins with this strip; -1: none.
  [[nodiscard]] int last_before(int strip) const {
    const int group = group_of(strip) - nodes_;
    return group < 0 ? -1 : begin_of(group + 1) - 1;
  }
  /// Calls f(first strip, end) for each group of this node.
  template <class F>
  void for_each_group(const F& f) const {
    for (int g = place_; g < groups_; g += nodes_) f(begin_of(g), begin_of(g + 1));
  }

 private:
  static constexpr int start_loss = 100;      // at most about one part in so many is spent waiting
  static constexpr int fewest_in_group = 16;  // strips; below, borders cost more than they save

  static int rounds(int strips, int blocks, int nodes) {
    const int wanted = (start_loss * (nodes - 1) + blocks - 1) / std::max(blocks, 1);
    return std::max(1, std::min(wanted, strips / (fewest_in_group * nodes)));
  }
  [[nodiscard]] int begin_of(int group) const {
    return static_cast<int>(static_cast<long long>(group) * strips_ / groups_);
  }
  [[nodiscard]] int group_of(int strip) const {
    return static_cast<int>((static_cast<long long>(strip + 1) * groups_ - 1) / strips_);
  }

  int strips_, nodes_, place_, groups_;
};

}  // namespace align
