// SPDX-License-Identifier: Apache-2.0
// Which tiles of a part are run on this node, how far it is with them, and which may run next.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <strata/detail/check.hpp>

#include "apps/align/share.hpp"
#include "apps/align/sweep.hpp"

namespace align {

struct front {
  front(sweep& s, share which)
      : tiles(s),
        mine(which),
        strips(std::make_unique<strip[]>(static_cast<std::size_t>(s.strips()))),
        arrived(std::make_unique<std::atomic<int>[]>(static_cast<std::size_t>(s.blocks()))) {
    for (int r = 0; r < s.strips(); ++r) {
      const share::range own = mine.blocks_of(r);
      at(r).begin = std::max(own.begin, s.first_block(r));
      at(r).end = std::max(std::min(own.end, s.end_block(r)), at(r).begin);
      at(r).done.store(at(r).begin, std::memory_order_relaxed);
      at(r).claimed.store(at(r).begin, std::memory_order_relaxed);
    }
    for (int c = 0; c < s.blocks(); ++c)
      arrived[static_cast<std::size_t>(c)].store(-1, std::memory_order_relaxed);
  }

  // This node's tiles of a strip, [begin, end), run in order. Invariant: done <= claimed <= done
  // + 1.
  struct alignas(64) strip {
    int begin = 0, end = 0;
    std::atomic<int> done, claimed;
    std::atomic<bool> has_state{false};  // has come from the node of the tiles before `begin`
  };
  strip& at(int r) { return strips[static_cast<std::size_t>(r)]; }
  [[nodiscard]] bool is_elsewhere(int r, int c) const {
    return tiles.exists(r, c) && !mine.owns(r, c);
  }

  // Takes the next tile of this node in a strip if it is ready and not taken; returns its block or
  // -1. As in wavefront_fork_join.cpp: both predecessors publish, then look, all seq_cst.
  int try_claim(int r) {
    if (r >= tiles.strips()) return -1;
    int c = at(r).done.load();
    if (c == at(r).end) return -1;
    if (c == at(r).begin && tiles.exists(r, c - 1) && !at(r).has_state.load()) return -1;
    if (tiles.exists(r - 1, c)) {
      const bool ready = mine.owns(r - 1, c) ? at(r - 1).done.load() > c
                                             : arrived[static_cast<std::size_t>(c)].load() >= r;
      if (!ready) return -1;
    }
    return at(r).claimed.compare_exchange_strong(c, c + 1) ? c : -1;
  }

  // Before a border for strip r is stored: whoever used its place last has finished. (That this
  // node knows of it is what makes the store ordered after it.)
  void check_free(int r, int c) {
    const int last = mine.last_before(r, c);
    if (tiles.exists(last, c)) STRATA_CHECK(at(last).done.load() > c, last, c, r);
  }

  sweep& tiles;
  share mine;
  std::unique_ptr<strip[]> strips;
  // Of each block: the last strip that has its border from the node above. Grows.
  std::unique_ptr<std::atomic<int>[]> arrived;
};

}  // namespace align
