// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "apps/align/hit_ground.hpp"

namespace align {

/// A tile that may hold the end of a hit, and what it can score at most.
struct tile_to_look_at {
  std::size_t field;
  int strip, block;
  std::int32_t bound;
};

/// The best cell of a tile among alignments that keep to free columns, the first of several.
struct best_free_cell {
  std::int32_t score = 0;  ///< 0: none; below what hits score at least, it may be more
  cell end;
  std::ptrdiff_t stretch_begin = 0;  ///< of the free columns that the alignment keeps to
};
[[nodiscard]] best_free_cell look_closely(const hit_ground& ground, const tile_to_look_at& tile);

}  // namespace align
