// SPDX-License-Identifier: Apache-2.0
// Which tiles of a sweep are a node's.
#pragma once

#include <algorithm>
#include <cstdint>

namespace align {

/// The tiles, strip by strip, are dealt to the nodes as a boustrophedon: 0, 1, 2, 2, 1, 0, 0, 1,
/// ... in portions as equal as can be, which end anywhere in a strip. What a node has at a stretch
/// is a group; there the next node goes on, a neighbour in number.
///
/// Why not one portion each, which would cost the fewest borders on the way: a node could then
/// never be ahead of the one above, would wait whenever that one has tiles that take longer, and
/// could not make up for it. A node at which the row turns has twice as much to do in each block as
/// the one above, so what it waits for gathers. And tiles with long alignments, which take several
/// times as long as others, lie close together: more groups share them out. A node starts when the
/// one above has gone down its group in the first block: if there are few blocks, smaller groups
/// shorten that.
class share {
 public:
  /// `from_behind`: the last node takes the first group. Of two sweeps that run at the same time
  /// one does so; then each node waits for one while it works on the other.
  share(int strips, int blocks, int nodes, int node, bool from_behind)
      : strips_(strips),
        blocks_(blocks),
        // None smaller than a strip: so what is above a tile is of its group or the one before.
        dealt_to_(std::min(nodes, strips)),
        passes_(passes(strips, blocks, dealt_to_)),
        mirror_(from_behind ? nodes - 1 : -1),
        place_(mirrored(node)) {}

  [[nodiscard]] int groups() const { return portions() - passes_ + 1; }
  /// Of a tile: groups are counted from the one that begins.
  [[nodiscard]] int group(int strip, int block) const { return group_of(tile(strip, block)); }
  [[nodiscard]] bool owns(int strip, int block) const { return has(group(strip, block)); }
  [[nodiscard]] int node(int strip, int block) const {
    return mirrored(place_of_group(group(strip, block)));
  }
  /// The blocks of a strip that are this node's, half open.
  struct range {
    int begin, end;
  };
  [[nodiscard]] range blocks_of(int strip) const {
    // A strip has tiles of two groups at most.
    const std::int64_t first = tile(strip, 0), last = tile(strip, blocks_ - 1);
    for (const int g : {group_of(first), group_of(last)}) {
      if (has(g)) {
        return {static_cast<int>(std::max(begin_of(g), first) - first),
                static_cast<int>(std::min(begin_of(g + 1), last + 1) - first)};
      }
    }
    return {0, 0};
  }
  /// In the same block, the last strip of this node's group before the one of this tile; -1: none.
  [[nodiscard]] int last_before(int strip, int block) const {
    const int g = group(strip, block);
    // As far before the last turn as g is behind it.
    const int before = g == 0 ? -1 : 2 * turn_before(g) - g;
    const std::int64_t end = before < 0 ? 0 : begin_of(before + 1);
    return end <= block ? -1 : static_cast<int>((end - 1 - block) / blocks_);
  }
  /// Calls f(first tile, end) for each group of this node, as numbers of tiles counted strip by
  /// strip.
  template <class F>
  void for_each_group(const F& f) const {
    for (int g = 0; g < groups(); ++g) {
      if (has(g)) f(begin_of(g), begin_of(g + 1));
    }
  }

 private:
  static constexpr int start_loss = 100;      // at most about one part in so many is spent waiting
  static constexpr int to_even_out = 2;       // passes
  static constexpr int fewest_in_group = 16;  // strips; below, borders cost more than they save

  static int passes(int strips, int blocks, int nodes) {
    if (nodes <= 1) return 1;
    const int to_start = (start_loss * (nodes - 1) + blocks - 1) / std::max(blocks, 1);
    return std::max(1,
                    std::min(std::max(to_start, to_even_out), strips / (fewest_in_group * nodes)));
  }
  // From a node to its place in the row, and back.
  [[nodiscard]] int mirrored(int n) const { return mirror_ < 0 ? n : mirror_ - n; }
  [[nodiscard]] int portions() const { return dealt_to_ * passes_; }
  [[nodiscard]] std::int64_t tile(int strip, int block) const {
    return std::int64_t{strip} * blocks_ + block;
  }
  [[nodiscard]] std::int64_t tiles() const { return tile(strips_, 0); }

  // Where a pass ends and the next one begins, a group has two portions. From one such turn to the
  // next there are as many groups as places but one.
  [[nodiscard]] int to_turn() const { return std::max(dealt_to_ - 1, 1); }
  [[nodiscard]] int turn_before(int g) const { return (g - 1) / to_turn() * to_turn(); }
  [[nodiscard]] int place_of_group(int g) const {
    const int pass = g / to_turn(), behind = g % to_turn();
    return pass % 2 == 0 ? behind : dealt_to_ - 1 - behind;
  }
  [[nodiscard]] bool has(int g) const { return place_of_group(g) == place_; }
  [[nodiscard]] std::int64_t begin_of(int g) const {
    const int turns = g == 0 ? 0 : std::min((g - 1) / to_turn(), passes_ - 1);
    return std::int64_t{g + turns} * tiles() / portions();
  }
  [[nodiscard]] int group_of(std::int64_t tile) const {
    const auto portion = static_cast<int>(((tile + 1) * portions() - 1) / tiles());
    return portion - portion / dealt_to_;
  }

  int strips_, blocks_, dealt_to_, passes_;
  int mirror_;  // the last node where the row begins with that, else -1
  int place_;
};

}  // namespace align
