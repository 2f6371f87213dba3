// SPDX-License-Identifier: Apache-2.0
#include "apps/align/hits.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <queue>
#include <strata/detail/check.hpp>
#include <utility>

#include "apps/align/close_look.hpp"
#include "apps/align/hit_ground.hpp"
#include "apps/align/shadow_lifting.hpp"
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
      : ground_(fields, ref, s, least, d), shadows_(ground_) {
    std::vector<candidate> all;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const sweep& tiles = *fields[f].tiles;
      // The sweep has found one cell already.
      const best_cell& best = tiles.best();
      sweep::tile_number solved{-1, -1};
      if (best.count() > 0 && best.score() >= ground_.least) {
        solved = tiles.tile_of(best.first());
        all.push_back({best.score(), true, f, solved.strip, solved.block, best.first(), 0, 0});
      }
      for (int r = 0; r < tiles.strips(); ++r) {
        for (int c = tiles.first_block(r); c < tiles.end_block(r); ++c) {
          if (tiles.tile_maximum(r, c) >= ground_.least &&
              !(r == solved.strip && c == solved.block))
            all.push_back({tiles.tile_maximum(r, c), false, f, r, c, {}});
        }
      }
    }
    queue_ = decltype(queue_)(later{}, std::move(all));
  }

  hits_found run(std::size_t most) {
    std::deque<hit> out;  // none moves while its path is made
    tracer paths(ground_.ref, ground_.score, ground_.how);
    std::size_t begun = 0;
    const auto begin_paths = [&] {
      for (; begun < out.size(); ++begun) paths.begin(ground_.fields[out[begun].field], out[begun]);
    };
    while (out.size() < most && !queue_.empty()) {
      candidate top = queue_.top();
      queue_.pop();
      // As long as shadows are lifted, everybody has enough to do.
      if (!shadows_.is_worth_it(top.score)) begin_paths();
      std::int32_t& bound = ground_.bounds[top.field].at(top.strip, top.block);
      if (top.known) {
        if (std::optional<hit> one = settle(top)) out.push_back(std::move(*one));
      } else if (bound < top.score) {
        top.score = bound;
        push(top);
      } else {
        const candidate best = examine(top);
        // Below `least` the search did not look closely.
        bound = std::max(best.score, ground_.least - 1);
        push(best);
      }
    }
    begin_paths();
    paths.finish();
    return {{std::make_move_iterator(out.begin()), std::make_move_iterator(out.end())},
            std::move(shadows_.work())};
  }

 private:
  void push(const candidate& c) {
    if (c.score >= ground_.least) queue_.push(c);
  }

  candidate examine(const candidate& c) const {
    const best_free_cell found = look_closely(ground_, {c.field, c.strip, c.block, c.score});
    candidate best = c;
    best.known = true;
    best.score = found.score;
    best.version = ground_.covered.version();
    best.end = found.end;
    best.stretch_begin = found.stretch_begin;
    return best;
  }

  // Nothing can beat this candidate. Makes a hit of it, unless an earlier hit has covered part of
  // it since. Its path is made later.
  std::optional<hit> settle(const candidate& c) {
    const field& f = ground_.fields[c.field];
    const letters_view usable =
        ground_.ref.sub(c.stretch_begin, ground_.ref.size() - c.stretch_begin);
    hit h;
    h.score = c.score;
    h.field = c.field;
    h.end = c.end;
    h.begin = find_begin(f.query, usable, {c.end.row, c.end.column - c.stretch_begin}, c.score,
                         ground_.score, ground_.how);
    STRATA_CHECK(h.begin.row >= 0, c.score, c.end.row, c.end.column);
    h.begin.column += c.stretch_begin;
    candidate tile = c;
    tile.known = false;
    tile.end = {};
    push(tile);  // it may hold further hits
    const interval columns{h.begin.column, h.end.column + 1};
    if (c.version != ground_.covered.version() && ground_.covered.touches(columns))
      return std::nullopt;
    ground_.covered.cover(columns);
    if (shadows_.is_worth_it(c.score)) shadows_.lift(columns);
    return h;
  }

  hit_ground ground_;
  shadow_lifting shadows_;
  std::priority_queue<candidate, std::vector<candidate>, later> queue_;
};

}  // namespace

hits_found find_hits(const std::vector<field>& fields, letters_view ref, const scoring& s,
                     std::size_t most, std::int32_t least, const driver& d) {
  if (most == 0) return {};
  return search(fields, ref, s, least, d).run(most);
}

}  // namespace align
