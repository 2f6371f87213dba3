// SPDX-License-Identifier: Apache-2.0
#include "apps/align/close_look.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace align {
namespace {

// Recomputes the tile with some context above and to the left of it, which gives scores that are
// never too high. They are exact once they reach the tile's bound, or what is possible at best if
// anything came in from outside, or if no alignment could need more context.
best_free_cell best_in_stretch(const hit_ground& g, const tile_to_look_at& t,
                               const sweep::rectangle& cells, interval stretch) {
  const sweep& whole = *g.fields[t.field].tiles;
  const std::ptrdiff_t end = std::min(stretch.end, cells.column_end);
  const std::ptrdiff_t first = std::max(stretch.begin, cells.column_begin);
  const auto longest = [&](std::ptrdiff_t other) {
    return other + other * g.score.match / g.score.extend + 1;
  };
  for (std::ptrdiff_t context = 128 + std::min(2 * (t.bound / g.score.match), 1024);;
       context *= 4) {
    int top = t.strip;
    while (top > 0 && cells.row_begin - whole.first_row(top) < context) --top;
    const interval columns{std::max(stretch.begin, first - context), end};
    const window low = g.make_window(t.field, top, cells.row_end, columns,
                                     {.only_strip = t.strip, .only_block = t.block});
    g.how.run(*low.tiles);
    const best_cell& best = low.tiles->best();
    best_free_cell found;
    found.stretch_begin = stretch.begin;
    if (best.count() > 0 && best.score() > 0) {
      found.score = best.score();
      found.end = {best.first().row + low.row, best.first().column + low.column};
    }
    const bool all_rows = top == 0 || cells.row_begin - low.row >= longest(end - stretch.begin);
    const bool all_columns =
        columns.begin == stretch.begin || first - columns.begin >= longest(cells.row_end);
    if (found.score >= t.bound || (all_rows && all_columns)) return found;

    const std::int32_t from_above =
        top == 0 ? 0 : g.bounds[t.field].highest(top - 1, top - 1, {columns.begin - 1, end});
    std::vector<std::int32_t> from_left =
        g.entering_from_left(t.field, top, t.strip, columns.begin, stretch.begin);
    if (from_above >= t.bound) continue;
    if (!from_left.empty() && *std::max_element(from_left.begin(), from_left.end()) >= t.bound)
      continue;
    const window high =
        g.make_window(t.field, top, cells.row_end, columns,
                      {.top_border = from_above, .left_borders = std::move(from_left)});
    g.how.run(*high.tiles);
    if (high.maximum(t.strip, t.block) <= std::max(found.score, g.least - 1)) return found;
  }
}

}  // namespace

best_free_cell look_closely(const hit_ground& ground, const tile_to_look_at& tile) {
  const sweep::rectangle cells =
      ground.fields[tile.field].tiles->tile_cells(tile.strip, tile.block);
  best_free_cell best;
  for (const interval stretch :
       ground.covered.free_stretches({cells.column_begin, cells.column_end})) {
    const best_free_cell found = best_in_stretch(ground, tile, cells, stretch);
    if (found.score > best.score ||
        (found.score == best.score && found.score > 0 && found.end < best.end))
      best = found;
  }
  return best;
}

}  // namespace align
