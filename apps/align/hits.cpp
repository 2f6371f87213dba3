// SPDX-License-Identifier: Apache-2.0
#include "apps/align/hits.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <strata/detail/check.hpp>

#include "apps/align/covered_columns.hpp"
#include "apps/align/shadow.hpp"
#include "apps/align/significance.hpp"
#include "apps/align/tile_bounds.hpp"
#include "apps/align/traceback.hpp"
#include "apps/align/tracer.hpp"

namespace align {
namespace {

// Something that may become a hit: a tile with an upper bound, or the best cell of a tile as of
// some version of the cover.
struct candidate {
  std::int32_t score;
  bool known;  // a cell, not just a bound
  std::size_t field;
  int strip, block;
  cell end;
  std::ptrdiff_t stretch_begin = 0;
  int version = -1;
};

// True if a comes out later than b. At equal scores bounds come first: no tie is decided before all
// who tie are known.
struct later {
  bool operator()(const candidate& a, const candidate& b) const {
    if (a.score != b.score) return a.score < b.score;
    if (a.known != b.known) return a.known;
    if (a.field != b.field) return a.field > b.field;
    if (a.end != b.end) return b.end < a.end;
    return a.strip != b.strip ? a.strip > b.strip : a.block > b.block;
  }
};

class search {
 public:
  search(const std::vector<field>& fields, letters_view ref, const scoring& s, std::int32_t least,
         const driver& d)
      : fields_(fields),
        ref_(ref),
        score_(s),
        least_(std::max(least, 1)),
        driver_(d),
        covered_(ref.size()) {
    double cells = 0;
    for (const field& f : fields)
      cells += static_cast<double>(f.query.size()) * static_cast<double>(ref.size());
    dark_score_ = 3 * chance_score(s, cells);
    driver_.progress = nullptr;
    std::vector<candidate> all;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      bounds_.emplace_back(*fields[f].tiles);
      const sweep& tiles = *fields[f].tiles;
      // The sweep has found one cell already.
      const best_cell& best = tiles.best();
      sweep::tile_number solved{-1, -1};
      if (best.count() > 0 && best.score() >= least_) {
        solved = tiles.tile_of(best.first());
        all.push_back({best.score(), true, f, solved.strip, solved.block, best.first(), 0, 0});
      }
      for (int r = 0; r < tiles.strips(); ++r) {
        for (int c = tiles.first_block(r); c < tiles.end_block(r); ++c) {
          if (tiles.tile_maximum(r, c) >= least_ && !(r == solved.strip && c == solved.block))
            all.push_back({tiles.tile_maximum(r, c), false, f, r, c, {}});
        }
      }
    }
    queue_ = decltype(queue_)(later{}, std::move(all));
  }

  hits_found run(std::size_t most) {
    std::deque<hit> out;  // none moves while its path is made
    tracer paths(ref_, score_, driver_);
    std::size_t begun = 0;
    const auto begin_paths = [&] {
      for (; begun < out.size(); ++begun) paths.begin(fields_[out[begun].field], out[begun]);
    };
    while (out.size() < most && !queue_.empty()) {
      candidate top = queue_.top();
      queue_.pop();
      // As long as shadows are lifted, everybody has enough to do.
      if (!casts_shadow(top.score)) begin_paths();
      const std::int32_t bound = bounds_[top.field].at(top.strip, top.block);
      if (top.known) {
        if (std::optional<hit> one = settle(top)) out.push_back(std::move(*one));
      } else if (bound < top.score) {
        top.score = bound;
        push(top);
      } else {
        const candidate best = examine(top);
        // Below `least_` the search did not look closely.
        bounds_[top.field].at(top.strip, top.block) = std::max(best.score, least_ - 1);
        push(best);
      }
    }
    begin_paths();
    paths.finish();
    return {{std::make_move_iterator(out.begin()), std::make_move_iterator(out.end())},
            std::move(work_)};
  }

 private:
  void push(const candidate& c) {
    if (c.score >= least_) queue_.push(c);
  }

  // Sweeps rows [first of strip `top`, row_end) of the columns. The window's tiles are the field's
  // own, cut at its border; block k of the field is block k - skipped of the window.
  struct window {
    std::unique_ptr<sweep> tiles;
    int top = 0, skipped = 0;
    std::ptrdiff_t row = 0, column = 0;

    [[nodiscard]] std::int32_t maximum(int strip, int block) const {
      const int r = strip - top, c = block - skipped;
      return tiles->exists(r, c) ? tiles->tile_maximum(r, c) : 0;
    }
  };
  // Not run yet.
  window make_window(std::size_t f, int top, std::ptrdiff_t row_end, interval columns,
                     std::int32_t top_border, std::vector<std::int32_t> left_borders,
                     int only_strip = -1, int only_block = -1) const {
    const sweep& whole = *fields_[f].tiles;
    window w;
    w.top = top;
    w.row = whole.first_row(top);
    w.column = columns.begin;
    const std::ptrdiff_t shift = columns.begin + whole.lag(top);
    sweep_options o;
    o.score = score_;
    o.height_index = whole.height_index();
    o.block_steps = whole.block_steps();
    o.phase = shift % o.block_steps;
    o.top_border = top_border;
    o.left_borders = std::move(left_borders);
    w.skipped = static_cast<int>(shift / o.block_steps);
    // best() is about the one tile asked for, or about none.
    o.only_strip = only_strip < 0 ? std::numeric_limits<int>::max() : only_strip - top;
    o.only_block = only_block - w.skipped;
    w.tiles = std::make_unique<sweep>(fields_[f].query.sub(w.row, row_end - w.row),
                                      ref_.sub(columns.begin, columns.end - columns.begin),
                                      driver_.prepare(o));
    return w;
  }

  // The best cell of a tile among alignments that keep to free columns.
  candidate examine(const candidate& c) const {
    const sweep::rectangle cells = fields_[c.field].tiles->tile_cells(c.strip, c.block);
    candidate best = c;
    best.score = 0;
    best.known = true;
    best.version = covered_.version();
    for (const interval stretch : covered_.free_stretches({cells.column_begin, cells.column_end})) {
      std::int32_t found_score = 0;
      const cell found = best_in_stretch(c, cells, stretch, found_score);
      if (found_score > best.score ||
          (found_score == best.score && found_score > 0 && found < best.end)) {
        best.score = found_score;
        best.end = found;
        best.stretch_begin = stretch.begin;
      }
    }
    return best;
  }

  // Recomputes the tile with some context above and to the left of it, which gives scores that are
  // never too high. They are exact once they reach the tile's bound, or what is possible at best if
  // anything came in from outside, or if no alignment could need more context.
  cell best_in_stretch(const candidate& c, const sweep::rectangle& cells, interval stretch,
                       std::int32_t& score) const {
    const sweep& whole = *fields_[c.field].tiles;
    const std::ptrdiff_t end = std::min(stretch.end, cells.column_end);
    const std::ptrdiff_t first = std::max(stretch.begin, cells.column_begin);
    const auto longest = [&](std::ptrdiff_t other) {
      return other + other * score_.match / score_.extend + 1;
    };
    for (std::ptrdiff_t context = 128 + std::min(2 * (c.score / score_.match), 1024);;
         context *= 4) {
      int top = c.strip;
      while (top > 0 && cells.row_begin - whole.first_row(top) < context) --top;
      const interval columns{std::max(stretch.begin, first - context), end};
      const window low = make_window(c.field, top, cells.row_end, columns, 0, {}, c.strip, c.block);
      driver_.run(*low.tiles);
      const best_cell& best = low.tiles->best();
      score = best.count() > 0 ? best.score() : 0;
      const auto answer = [&] {
        return score > 0 ? cell{best.first().row + low.row, best.first().column + low.column}
                         : cell{};
      };
      const bool all_rows = top == 0 || cells.row_begin - low.row >= longest(end - stretch.begin);
      const bool all_columns =
          columns.begin == stretch.begin || first - columns.begin >= longest(cells.row_end);
      if (score >= c.score || (all_rows && all_columns)) return answer();

      const tile_bounds& b = bounds_[c.field];
      const std::int32_t from_above =
          top == 0 ? 0 : b.highest(top - 1, top - 1, {columns.begin - 1, end});
      std::vector<std::int32_t> from_left =
          entering_from_left(c.field, top, c.strip, columns.begin, stretch.begin);
      if (from_above >= c.score) continue;
      if (!from_left.empty() && *std::max_element(from_left.begin(), from_left.end()) >= c.score)
        continue;
      const window high =
          make_window(c.field, top, cells.row_end, columns, from_above, std::move(from_left));
      driver_.run(*high.tiles);
      if (high.maximum(c.strip, c.block) <= std::max(score, least_ - 1)) return answer();
    }
  }

  // What may come into each of some strips from the column left of `begin`; nothing if that is
  // where the free columns begin. The first row of a strip also sees the last one of the strip
  // above.
  [[nodiscard]] std::vector<std::int32_t> entering_from_left(std::size_t f, int first_strip,
                                                             int last_strip, std::ptrdiff_t begin,
                                                             std::ptrdiff_t free_begin) const {
    std::vector<std::int32_t> out;
    if (begin == free_begin) return out;
    for (int r = first_strip; r <= last_strip; ++r)
      out.push_back(bounds_[f].highest(std::max(r - 1, 0), r, {begin - 1, begin}));
    return out;
  }

  [[nodiscard]] bool casts_shadow(std::int32_t score) const {
    return score / score_.extend >= long_shadow && dark_score_ > 0;
  }

  // Nothing can beat this candidate. Makes a hit of it, unless an earlier hit has covered part of
  // it since. Its path is made later.
  std::optional<hit> settle(const candidate& c) {
    const field& f = fields_[c.field];
    const letters_view usable = ref_.sub(c.stretch_begin, ref_.size() - c.stretch_begin);
    hit h;
    h.score = c.score;
    h.field = c.field;
    h.end = c.end;
    h.begin = find_begin(f.query, usable, {c.end.row, c.end.column - c.stretch_begin}, c.score,
                         score_, driver_);
    STRATA_CHECK(h.begin.row >= 0, c.score, c.end.row, c.end.column);
    h.begin.column += c.stretch_begin;
    candidate tile = c;
    tile.known = false;
    tile.end = {};
    push(tile);  // it may hold further hits
    const interval columns{h.begin.column, h.end.column + 1};
    if (c.version != covered_.version() && covered_.touches(columns)) return std::nullopt;
    covered_.cover(columns);
    if (casts_shadow(c.score)) {
      for (std::size_t other = 0; other < fields_.size(); ++other) lift_shadow(other, columns);
    }
    return h;
  }

  // A high score fades so slowly to the right of its end and below it that it hides, in hundreds of
  // tiles, what else is there. Now that the hit's columns are taken, two sweeps beside them give
  // all those tiles their new bounds at once.
  void lift_shadow(std::size_t f, interval taken) {
    const std::optional<shadow> dark =
        find_shadow(*fields_[f].tiles, bounds_[f], taken, dark_score_);
    if (!dark) return;
    interval left{0, taken.begin}, right{taken.end, ref_.size()};
    for (const interval s :
         covered_.free_stretches({std::max<std::ptrdiff_t>(taken.begin - 1, 0), taken.end + 1})) {
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

  // A sweep of free columns through some strips.
  struct lit {
    window seen;
    interval columns{0, 0};
    interval strips{0, 0};

    [[nodiscard]] bool has(int r, interval part) const {
      return strips.begin <= r && r < strips.end && columns.begin <= part.begin &&
             part.end <= columns.end;
    }
  };
  // Not run yet.
  [[nodiscard]] lit make_light(std::size_t f, interval columns, std::ptrdiff_t free_begin,
                               interval strips) const {
    if (columns.begin >= columns.end || strips.begin >= strips.end) return {};
    const auto entering = [&](int top) {
      return top == 0 ? 0 : bounds_[f].highest(top - 1, top - 1, {columns.begin - 1, columns.end});
    };
    int top = std::max(0, static_cast<int>(strips.begin) - context_strips);
    if (entering(top) > dark_score_) top = 0;
    const int last = static_cast<int>(strips.end) - 1;
    lit out;
    out.seen =
        make_window(f, top, fields_[f].tiles->tile_cells(last, 0).row_end, columns, entering(top),
                    entering_from_left(f, top, last, columns.begin, free_begin));
    out.columns = columns;
    out.strips = {top, strips.end};
    return out;
  }

  void run_both(std::size_t f, const window& one, const window& other) {
    std::vector<part> parts;
    for (const window* w : {&one, &other}) {
      if (w->tiles) parts.push_back({w->tiles.get(), fields_[f].reverse_strand, w->row, w->column});
    }
    const std::vector<node_work> work = driver_.run_all(parts, driver::fewest_tiles_beside_hits);
    work_.resize(std::max(work_.size(), work.size()));
    for (std::size_t n = 0; n < work.size(); ++n) work_[n] += work[n];
  }

  void lower_bounds(std::size_t f, interval columns, const lit& on_left, const lit& on_right) {
    const sweep& whole = *fields_[f].tiles;
    for (int r = 0; r < whole.strips(); ++r) {
      for (int c = whole.first_block(r); c < whole.end_block(r); ++c) {
        const sweep::rectangle cells = whole.tile_cells(r, c);
        if (cells.column_end <= columns.begin || columns.end <= cells.column_begin) continue;
        std::int32_t highest = 0;
        bool all_seen = true;
        for (const interval s : covered_.free_stretches({cells.column_begin, cells.column_end})) {
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
        std::int32_t& bound = bounds_[f].at(r, c);
        if (all_seen) bound = std::min(bound, highest);
      }
    }
  }

  static constexpr std::int32_t long_shadow = 256;  // columns
  static constexpr std::ptrdiff_t context_columns = 4096;
  static constexpr int context_strips = 8;
  const std::vector<field>& fields_;
  letters_view ref_;
  scoring score_;
  std::int32_t least_;
  // Tiles up to here are looked at one by one. 0: chance goes anywhere, and no shadow ever ends.
  std::int32_t dark_score_ = 0;
  driver driver_;
  covered_columns covered_;
  std::vector<tile_bounds> bounds_;
  std::vector<node_work> work_;
  std::priority_queue<candidate, std::vector<candidate>, later> queue_;
};

}  // namespace

hits_found find_hits(const std::vector<field>& fields, letters_view ref, const scoring& s,
                     std::size_t most, std::int32_t least, const driver& d) {
  if (most == 0) return {};
  return search(fields, ref, s, least, d).run(most);
}

}  // namespace align
