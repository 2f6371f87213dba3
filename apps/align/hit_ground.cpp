// SPDX-License-Identifier: Apache-2.0
#include "apps/align/hit_ground.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace align {

hit_ground::hit_ground(const std::vector<field>& compared, letters_view reference, const scoring& s,
                       std::int32_t at_least, const driver& d)
    : fields(compared),
      ref(reference),
      score(s),
      least(std::max(at_least, 1)),
      how(d),
      covered(reference.size()) {
  how.progress = nullptr;
  for (const field& f : fields) bounds.emplace_back(*f.tiles);
}

window hit_ground::make_window(std::size_t f, int top, std::ptrdiff_t row_end, interval columns,
                               window_options more) const {
  const sweep& whole = *fields[f].tiles;
  window w;
  w.top = top;
  w.row = whole.first_row(top);
  w.column = columns.begin;
  const std::ptrdiff_t shift = columns.begin + whole.lag(top);
  sweep_options o;
  o.score = score;
  o.height_index = whole.height_index();
  o.block_steps = whole.block_steps();
  o.phase = shift % o.block_steps;
  o.top_border = more.top_border;
  o.left_borders = std::move(more.left_borders);
  w.skipped = static_cast<int>(shift / o.block_steps);
  // best() is about the one tile asked for, or about none.
  o.only_strip = more.only_strip < 0 ? std::numeric_limits<int>::max() : more.only_strip - top;
  o.only_block = more.only_block - w.skipped;
  w.tiles =
      std::make_unique<sweep>(fields[f].query.sub(w.row, row_end - w.row),
                              ref.sub(columns.begin, columns.end - columns.begin), how.prepare(o));
  return w;
}

std::vector<std::int32_t> hit_ground::entering_from_left(std::size_t f, int first_strip,
                                                         int last_strip, std::ptrdiff_t begin,
                                                         std::ptrdiff_t free_begin) const {
  std::vector<std::int32_t> out;
  if (begin == free_begin) return out;
  for (int r = first_strip; r <= last_strip; ++r)
    out.push_back(bounds[f].highest(std::max(r - 1, 0), r, {begin - 1, begin}));
  return out;
}

}  // namespace align
