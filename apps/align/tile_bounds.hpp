// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/align/covered_columns.hpp"
#include "apps/align/sweep.hpp"

namespace align {

/// What each tile of a field can offer at most: first its maximum, then what is found to be left of
/// it.
class tile_bounds {
 public:
  explicit tile_bounds(const sweep& s)
      : sweep_(&s),
        values_(static_cast<std::size_t>(s.strips()) * static_cast<std::size_t>(s.blocks())) {
    for (int r = 0; r < s.strips(); ++r) {
      for (int c = s.first_block(r); c < s.end_block(r); ++c) at(r, c) = s.tile_maximum(r, c);
    }
  }
  std::int32_t& at(int r, int c) { return values_[index(r, c)]; }
  [[nodiscard]] std::int32_t at(int r, int c) const { return values_[index(r, c)]; }
  /// Over the tiles of some strips that have a cell in these columns.
  [[nodiscard]] std::int32_t highest(int first_strip, int last_strip, interval columns) const {
    std::int32_t out = 0;
    for (int r = first_strip; r <= last_strip; ++r) {
      const auto block_of = [&](std::ptrdiff_t column) {
        return static_cast<int>((column + sweep_->lag(r)) / sweep_->block_steps());
      };
      // A column of the strip's last lanes is reached up to lag(1) steps later.
      const int from =
          std::max(block_of(std::max<std::ptrdiff_t>(columns.begin, 0)), sweep_->first_block(r));
      const int to = std::min(block_of(columns.end - 1 + sweep_->lag(1)), sweep_->end_block(r) - 1);
      for (int c = from; c <= to; ++c) out = std::max(out, at(r, c));
    }
    return out;
  }

 private:
  [[nodiscard]] std::size_t index(int r, int c) const {
    return static_cast<std::size_t>(r) * static_cast<std::size_t>(sweep_->blocks()) +
           static_cast<std::size_t>(c);
  }

  const sweep* sweep_;
  std::vector<std::int32_t> values_;
};

}  // namespace align
