// SPDX-License-Identifier: Apache-2.0
#include "apps/align/shadow_lifting.hpp"

#include <algorithm>
#include <optional>

#include "apps/align/shadow.hpp"
#include "apps/align/significance.hpp"

namespace align {

shadow_lifting::shadow_lifting(hit_ground& ground) : ground_(ground) {
  double cells = 0;
  for (const field& f : ground.fields)
    cells += static_cast<double>(f.query.size()) * static_cast<double>(ground.ref.size());
  dark_score_ = static_cast<std::int32_t>(
      std::min(max_score, 3 * std::int64_t{chance_score_untried(ground.score, cells)}));
}

bool shadow_lifting::is_worth_it(std::int32_t score) const {
  return score / ground_.score.extend >= long_shadow && dark_score_ > 0;
}

void shadow_lifting::lift(interval taken) {
  for (std::size_t f = 0; f < ground_.fields.size(); ++f) lift(f, taken);
}

void shadow_lifting::lift(std::size_t f, interval taken) {
  const std::optional<shadow> dark =
      find_shadow(*ground_.fields[f].tiles, ground_.bounds[f], taken, dark_score_);
  if (!dark) return;
  interval left{0, taken.begin}, right{taken.end, ground_.ref.size()};
  for (const interval s : ground_.covered.free_stretches(
           {std::max<std::ptrdiff_t>(taken.begin - 1, 0), taken.end + 1})) {
    if (s.end == taken.begin) left = s;
    if (s.begin == taken.end) right = s;
  }
  // Some context: what comes in from the left of it is only bounded.
  const std::ptrdiff_t free_left = left.begin;
  left.begin = std::max(left.begin, std::min(dark->columns.begin, taken.begin) - context_columns);
  right.end = std::min(right.end, dark->columns.end);
  const lit on_left = make_light(f, left, free_left, dark->left_strips);
  const lit on_right = make_light(f, right, right.begin, dark->right_strips);
  run_both(f, on_left.seen, on_right.seen);
  lower_bounds(f, {left.begin, right.end}, on_left, on_right);
}

shadow_lifting::lit shadow_lifting::make_light(std::size_t f, interval columns,
                                               std::ptrdiff_t free_begin, interval strips) const {
  if (columns.begin >= columns.end || strips.begin >= strips.end) return {};
  const auto entering = [&](int top) {
    return top == 0 ? 0
                    : ground_.bounds[f].highest(top - 1, top - 1, {columns.begin - 1, columns.end});
  };
  int top = std::max(0, static_cast<int>(strips.begin) - context_strips);
  if (entering(top) > dark_score_) top = 0;
  const int last = static_cast<int>(strips.end) - 1;
  lit out;
  out.seen = ground_.make_window(
      f, top, ground_.fields[f].tiles->tile_cells(last, 0).row_end, columns,
      {.top_border = entering(top),
       .left_borders = ground_.entering_from_left(f, top, last, columns.begin, free_begin)});
  out.columns = columns;
  out.strips = {top, strips.end};
  return out;
}

void shadow_lifting::run_both(std::size_t f, const window& one, const window& other) {
  std::vector<part> parts;
  for (const window* w : {&one, &other}) {
    if (w->tiles)
      parts.push_back({w->tiles.get(), ground_.fields[f].reverse_strand, w->row, w->column});
  }
  const std::vector<node_work> work = ground_.how.run_all(parts, driver::fewest_tiles_beside_hits);
  work_.resize(std::max(work_.size(), work.size()));
  for (std::size_t n = 0; n < work.size(); ++n) work_[n] += work[n];
}

void shadow_lifting::lower_bounds(std::size_t f, interval columns, const lit& on_left,
                                  const lit& on_right) {
  const sweep& whole = *ground_.fields[f].tiles;
  for (int r = 0; r < whole.strips(); ++r) {
    for (int c = whole.first_block(r); c < whole.end_block(r); ++c) {
      const sweep::rectangle cells = whole.tile_cells(r, c);
      if (cells.column_end <= columns.begin || columns.end <= cells.column_begin) continue;
      std::int32_t highest = 0;
      bool all_seen = true;
      for (const interval s :
           ground_.covered.free_stretches({cells.column_begin, cells.column_end})) {
        const interval part{std::max(s.begin, cells.column_begin),
                            std::min(s.end, cells.column_end)};
        const lit* const by = on_left.has(r, part)    ? &on_left
                              : on_right.has(r, part) ? &on_right
                                                      : nullptr;
        if (by)
          highest = std::max(highest, by->seen.maximum(r, c));
        else
          all_seen = false;
      }
      std::int32_t& bound = ground_.bounds[f].at(r, c);
      if (all_seen) bound = std::min(bound, highest);
    }
  }
}

}  // namespace align
