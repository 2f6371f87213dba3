// SPDX-License-Identifier: Apache-2.0

#include "apps/align/band.hpp"
#include "apps/align/small_path.hpp"
#include "apps/align/traceback.hpp"

namespace align {
namespace {

constexpr std::ptrdiff_t small_cells = 1 << 16;
constexpr std::ptrdiff_t few_rows = 4;

// Scores of aligning all rows with the first j columns, for each j from 0, and of doing so with the
// last row in a gap.
struct last_row {
  std::vector<std::int32_t> whole, gapped;
};

last_row sweep_half(letters_view query, letters_view ref, const scoring& s, int top,
                    const band& within, const driver& d) {
  sweep_options o;
  o.score = s;
  o.local = false;
  o.top_left_open = top;
  o.keep_last_row = true;
  o.within = within;
  sweep half(query, ref, d.prepare(o));
  d.run(half);
  last_row out;
  const auto border =
      static_cast<std::int32_t>(-(top + (query.size() - 1) * static_cast<std::int64_t>(s.extend)));
  out.whole.reserve(half.last_row().size() + 1);
  out.gapped.reserve(half.last_row().size() + 1);
  out.whole.push_back(border);
  out.gapped.push_back(border);
  out.whole.insert(out.whole.end(), half.last_row().begin(), half.last_row().end());
  // The kernel reports the candidate for the next row, max(gap - extend, H - open). Where opening
  // won, adding `extend` back gives more than the gap was worth, but then joining the halves
  // without a gap is worth at least as much, and is preferred below.
  for (const std::int32_t f : half.last_row_gap()) out.gapped.push_back(f + s.extend);
  return out;
}

// `least`: the score, or less.
path solve(letters_view query, letters_view ref, std::int64_t least, const scoring& s, int top,
           int bottom, const driver& d) {
  const std::ptrdiff_t m = query.size(), n = ref.size();
  path out;
  if (m == 0 || n == 0) {
    out.add(step::query_only, m);
    out.add(step::ref_only, n);
    return out;
  }
  const band within = band_of_paths(m, n, least, s);
  // Also where the band is wider than the matrix.
  if (m <= few_rows || m * (within.highest - within.lowest + 1) <= small_cells ||
      (m + 1) * (n + 1) <= small_cells)
    return small_path(query, ref, within, s, top, bottom);

  // Turned around, the last diagonal becomes the first: the band is its own mirror image.
  const std::ptrdiff_t middle = m / 2;
  last_row upper, lower;
  d.both([&] { upper = sweep_half(query.sub(0, middle), ref, s, top, within, d); },
         [&] {
           lower = sweep_half(query.sub(middle, m - middle).backwards(), ref.backwards(), s, bottom,
                              within, d);
         });
  std::ptrdiff_t column = 0;
  bool in_gap = false;
  std::int64_t best = std::numeric_limits<std::int64_t>::min();
  for (int gapped = 0; gapped < 2; ++gapped) {
    // A gap across the middle was opened by both halves.
    const std::int64_t refund = gapped ? s.open - s.extend : 0;
    const auto& from_top = gapped ? upper.gapped : upper.whole;
    const auto& from_bottom = gapped ? lower.gapped : lower.whole;
    for (std::ptrdiff_t j = 0; j <= n; ++j) {
      const std::int64_t score = std::int64_t{from_top[static_cast<std::size_t>(j)]} +
                                 from_bottom[static_cast<std::size_t>(n - j)] + refund;
      if (score > best) {
        best = score;
        column = j;
        in_gap = gapped != 0;
      }
    }
  }
  // Of each part; the gap that the middle cuts was paid for as if it ended there.
  const auto part = [&](const last_row& half, std::ptrdiff_t columns) {
    const auto at = static_cast<std::size_t>(columns);
    return in_gap ? std::int64_t{half.gapped[at]} + s.open : std::int64_t{half.whole[at]};
  };
  const std::int64_t least_left = part(upper, column), least_right = part(lower, n - column);
  upper = lower = {};
  path left, right;
  const std::ptrdiff_t inside = in_gap ? 1 : 0;  // rows on each side that the gap swallows
  const int border_cost = in_gap ? s.extend : s.open;
  d.both(
      [&] {
        left = solve(query.sub(0, middle - inside), ref.sub(0, column), least_left, s, top,
                     border_cost, d);
      },
      [&] {
        right = solve(query.sub(middle + inside, m - middle - inside), ref.sub(column, n - column),
                      least_right, s, border_cost, bottom, d);
      });
  out.append(left);
  out.add(step::query_only, 2 * inside);
  out.append(right);
  return out;
}

}  // namespace

path global_path(letters_view query, letters_view ref, std::int64_t least, const scoring& s,
                 const driver& d) {
  return solve(query, ref, least, s, s.open, s.open, d);
}

}  // namespace align
