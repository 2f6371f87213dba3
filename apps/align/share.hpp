// SPDX-License-Identifier: Apache-2.0
// Which tiles of a sweep are a node's.
#pragma once

#include <algorithm>
#include <cstdint>

namespace align {

/// The tiles, strip by strip, are cut into groups as equal as can be, and dealt to the nodes in
/// turn: a group ends anywhere in a strip, where the node of the next one goes on. One group per
/// node costs the fewest borders on the way. A node starts when the node above has gone down its
/// group in the first block: if there are few blocks, more and smaller groups shorten that.
class share {
 public:
  /// `from_behind`: the last node takes the first group. Of two sweeps that run at the same time
  /// one does so; then each node waits for one while it works on the other.
  share(int strips, int blocks, int nodes, int node, bool from_behind)
      : strips_(strips),
        blocks_(blocks),
        nodes_(nodes),
        place_(from_behind ? nodes - 1 - node : node),
        // None smaller than a strip: so what is above a tile is of its group or the one before.
        groups_(std::min(strips, nodes * rounds(strips, blocks, nodes))) {}

  [[nodiscard]] int groups() const { return groups_; }
  [[nodiscard]] bool owns(int strip, int block) const {
    return group_of(tile(strip, block)) % nodes_ == place_;
  }
  /// The blocks of a strip that are this node's, half open.
  struct range {
    int begin, end;
  };
  [[nodiscard]] range blocks_of(int strip) const {
    // A strip has tiles of two groups at most.
    const std::int64_t first = tile(strip, 0), last = tile(strip, blocks_ - 1);
    for (const int g : {group_of(first), group_of(last)}) {
      if (g % nodes_ == place_) {
        return {static_cast<int>(std::max(begin_of(g), first) - first),
                static_cast<int>(std::min(begin_of(g + 1), last + 1) - first)};
      }
    }
    return {0, 0};
  }
  /// In the same block, the last strip of this node's group before the one of this tile; -1: none.
  [[nodiscard]] int last_before(int strip, int block) const {
    const int group = group_of(tile(strip, block)) - nodes_;
    const std::int64_t end = group < 0 ? 0 : begin_of(group + 1);
    return end <= block ? -1 : static_cast<int>((end - 1 - block) / blocks_);
  }
  /// Calls f(first tile, end) for each group of this node, as numbers of tiles counted strip by
  /// strip.
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
  [[nodiscard]] std::int64_t tile(int strip, int block) const {
    return std::int64_t{strip} * blocks_ + block;
  }
  [[nodiscard]] std::int64_t tiles() const { return tile(strips_, 0); }
  [[nodiscard]] std::int64_t begin_of(int group) const { return group * tiles() / groups_; }
  [[nodiscard]] int group_of(std::int64_t tile) const {
    return static_cast<int>(((tile + 1) * groups_ - 1) / tiles());
  }

  int strips_, blocks_, nodes_, place_, groups_;
};

}  // namespace align
