// SPDX-License-Identifier: Apache-2.0
// A sweep as part of a comparison, so that every node of a job can make the same one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "apps/align/sweep.hpp"

namespace align {

/// A local sweep, and where in the comparison its first cell lies.
struct part {
  sweep* tiles = nullptr;
  bool reverse_strand = false;
  std::ptrdiff_t row = 0, column = 0;
};

/// What a node did for sweeps that were shared out.
struct node_work {
  std::int64_t tiles = 0;
  std::int64_t cells = 0;
  std::int64_t bytes_sent = 0;  ///< borders and results

  node_work& operator+=(const node_work& o) {
    tiles += o.tiles;
    cells += o.cells;
    bytes_sent += o.bytes_sent;
    return *this;
  }
};

}  // namespace align
