// SPDX-License-Identifier: Apache-2.0
#include "apps/align/small_path.hpp"

#include <algorithm>
#include <vector>

namespace align {
namespace {

// What led to H, and whether the gaps that end in a cell extend a gap or open one.
enum decision : std::uint8_t {
  from_diagonal = 0,
  from_left = 1,
  from_above = 2,
  from_mask = 3,
  left_extends = 4,
  above_extends = 8
};
constexpr std::int64_t unreachable = -(std::int64_t{1} << 60);

// What was decided in each cell of the band: row i keeps columns [i + lowest, i + highest].
class decisions {
 public:
  decisions(std::ptrdiff_t rows, const band& within)
      : lowest_(within.lowest),
        width_(within.highest - within.lowest + 1),
        how_(static_cast<std::size_t>(rows * width_)) {}
  // That of column j is at j - i - lowest.
  std::uint8_t* row(std::ptrdiff_t i) { return how_.data() + (i - 1) * width_; }
  std::uint8_t at(std::ptrdiff_t i, std::ptrdiff_t j) { return row(i)[j - i - lowest_]; }

 private:
  std::ptrdiff_t lowest_, width_;
  std::vector<std::uint8_t> how_;
};

// Of the last cell: the best score, and the best that ends in a gap in the reference.
struct corner {
  std::int64_t h, above;
};

// What lies beyond the band is unreachable.
corner fill(letters_view query, letters_view ref, const band& within, const scoring& s, int top,
            decisions& how) {
  const std::ptrdiff_t m = query.size(), n = ref.size();
  std::vector<std::int64_t> h(static_cast<std::size_t>(n) + 1), above(h.size(), unreachable);
  for (std::ptrdiff_t j = 1; j <= n; ++j) h[static_cast<std::size_t>(j)] = -s.gap(j);
  for (std::ptrdiff_t i = 1; i <= m; ++i) {
    const std::ptrdiff_t first = std::max<std::ptrdiff_t>(1, i + within.lowest);
    const std::ptrdiff_t last = std::min(n, i + within.highest);
    if (i > 1 && last == i + within.highest)
      h[static_cast<std::size_t>(last)] = above[static_cast<std::size_t>(last)] = unreachable;
    std::int64_t& before = h[static_cast<std::size_t>(first - 1)];
    std::int64_t diagonal = before;
    before = first == 1 ? -(top + (i - 1) * static_cast<std::int64_t>(s.extend)) : unreachable;
    std::int64_t left = unreachable;
    const std::uint8_t q = query[i - 1];
    std::uint8_t* const row = how.row(i);  // no store to it makes the loop read `how` again
    for (std::ptrdiff_t j = first; j <= last; ++j) {
      const auto at = static_cast<std::size_t>(j);
      std::uint8_t d = 0;
      const std::int64_t open_left = h[at - 1] - s.open, open_above = h[at] - s.open;
      if (left - s.extend > open_left) d |= left_extends;
      left = std::max(left - s.extend, open_left);
      if (above[at] - s.extend > open_above) d |= above_extends;
      above[at] = std::max(above[at] - s.extend, open_above);
      const bool equal = q == ref[j - 1] && q < letter_ambiguous;
      std::int64_t best = diagonal + (equal ? s.match : s.mismatch);
      if (left > best) {
        best = left;
        d |= from_left;
      }
      if (above[at] > best) {
        best = above[at];
        d = static_cast<std::uint8_t>((d & ~from_mask) | from_above);
      }
      diagonal = h[at];
      h[at] = best;
      row[j - i - within.lowest] = d;
    }
  }
  return {h.back(), above.back()};
}

// From cell (i, j); `in`: the gap that it lies in, or from_mask.
path trace_back(decisions& how, std::ptrdiff_t i, std::ptrdiff_t j, int in) {
  std::vector<path_run> backwards;
  while (i > 0 || j > 0) {
    // On the top border only the left remains, on the left border only what is above.
    const std::uint8_t d = i > 0 && j > 0 ? how.at(i, j) : 0;
    if (i == 0)
      in = from_left;
    else if (j == 0)
      in = from_above;
    else if (in == from_mask)
      in = d & from_mask;
    if (in == from_diagonal) {
      backwards.push_back({step::pair, 1});
      --i, --j;
      in = from_mask;
    } else if (in == from_left) {
      backwards.push_back({step::ref_only, 1});
      --j;
      if (!(d & left_extends)) in = from_mask;
    } else {
      backwards.push_back({step::query_only, 1});
      --i;
      if (!(d & above_extends)) in = from_mask;
    }
  }
  path out;
  for (auto run = backwards.rbegin(); run != backwards.rend(); ++run)
    out.add(run->kind, run->length);
  return out;
}

}  // namespace

path small_path(letters_view query, letters_view ref, const band& within, const scoring& s, int top,
                int bottom) {
  decisions how(query.size(), within);
  const corner last = fill(query, ref, within, s, top, how);
  const bool ends_in_gap = ref.size() > 0 && last.above + s.open - bottom > last.h;
  return trace_back(how, query.size(), ref.size(), ends_in_gap ? from_above : from_mask);
}

}  // namespace align
