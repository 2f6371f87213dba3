// SPDX-License-Identifier: Apache-2.0
#include "apps/align/shadow.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace align {

std::optional<shadow> find_shadow(const sweep& whole, const tile_bounds& bounds, interval taken,
                                  std::int32_t dark_score) {
  shadow dark{taken, {0, 0}, {0, 0}};
  const auto extend = [](interval& strips, int r) {
    strips = {strips.begin < strips.end ? strips.begin : r, r + 1};
  };
  const auto blocks = static_cast<std::size_t>(whole.blocks());
  std::vector<char> above(blocks, 0), here(blocks, 0);
  // Scores pass from a tile to the one on its right and the one below: row by row finds them all.
  for (int r = 0; r < whole.strips(); ++r) {
    here.assign(blocks, 0);
    for (int c = whole.first_block(r); c < whole.end_block(r); ++c) {
      if (bounds.at(r, c) <= dark_score) continue;
      const sweep::rectangle cells = whole.tile_cells(r, c);
      const auto at = static_cast<std::size_t>(c);
      if (!(cells.column_begin < taken.end && taken.begin < cells.column_end) && !above[at] &&
          (c == 0 || !here[at - 1]))
        continue;
      here[at] = 1;
      dark.columns.begin = std::min(dark.columns.begin, cells.column_begin);
      dark.columns.end = std::max(dark.columns.end, cells.column_end);
      if (cells.column_begin < taken.begin) extend(dark.left_strips, r);
      if (taken.end < cells.column_end) extend(dark.right_strips, r);
    }
    above.swap(here);
  }
  if (dark.left_strips.end == 0 && dark.right_strips.end == 0) return std::nullopt;
  return dark;
}

}  // namespace align
