// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <strata/fork_join.hpp>

#include "apps/nqueens/board.hpp"

namespace nqueens {

// A task per safe placement: while one placement is searched, the rest of its row may be taken by
// another worker, which does the same with it. Rows from depth_max on are searched serially. Call
// inside a runtime.
class fork_join_search {
 public:
  fork_join_search(unsigned n, unsigned depth_max) : n_(n), depth_max_(depth_max) {}

  std::uint64_t operator()() const { return extend(0, board{}); }

 private:
  std::uint64_t extend(unsigned row, const board& b) const {
    if (row == n_) return 1;
    if (row >= depth_max_) return serial(n_, row, b);
    return place(row, b, 0);
  }

  // Solutions with the queen of this row in `column` or to its right.
  std::uint64_t place(unsigned row, const board& b, unsigned column) const {
    while (column < n_ && !safe(b, row, column)) ++column;
    if (column == n_) return 0;
    const auto [here, rest] =
        strata::fork2join([&] { return extend(row + 1, with_queen(b, row, column)); },
                          [&] { return place(row, b, column + 1); });
    return here + rest;
  }

  unsigned n_;
  unsigned depth_max_;
};

}  // namespace nqueens
