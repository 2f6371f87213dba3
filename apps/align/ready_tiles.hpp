// SPDX-License-Identifier: Apache-2.0
// Which of the tiles that could run a node runs first.
#pragma once

#include <mutex>
#include <queue>
#include <strata/detail/check.hpp>
#include <tuple>
#include <vector>

namespace align {

struct ready_tile {
  int part = 0, group = 0, strip = 0, block = 0;
};

/// Tiles that are claimed and not begun. The group that comes first in its sweep goes first: what
/// leaves it is what other nodes wait for, while what is ready in a later group can wait. Within a
/// group, column by column. (The newest first, as the runtime would have it, is the latest group:
/// the other node then waits for what nobody works on.)
///
/// Any worker of the node may call both functions; a lock, as they are called once in hundreds of
/// microseconds.
class ready_tiles {
 public:
  void push(const ready_tile& t) {
    const std::lock_guard lock(mutex_);
    tiles_.push(t);
  }
  /// There must be one: who pushes a tile makes one activation for it.
  [[nodiscard]] ready_tile pop() {
    const std::lock_guard lock(mutex_);
    STRATA_CHECK(!tiles_.empty());
    const ready_tile first = tiles_.top();
    tiles_.pop();
    return first;
  }

 private:
  struct later {
    static auto key(const ready_tile& t) { return std::tuple(t.group, t.block, t.strip, t.part); }
    bool operator()(const ready_tile& a, const ready_tile& b) const { return key(b) < key(a); }
  };

  std::mutex mutex_;
  std::priority_queue<ready_tile, std::vector<ready_tile>, later> tiles_;
};

}  // namespace align
