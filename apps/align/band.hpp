// SPDX-License-Identifier: Apache-2.0
// Which diagonals an alignment can pass whose score is known: gaps lead away from the main
// diagonal, and each of their letters costs what the pairs have to make up for. Source: after E.
// Ukkonen, Algorithms for approximate string matching, doi:10.1016/S0019-9958(85)80046-2.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "apps/align/scoring.hpp"

namespace align {

/// Diagonals (column - row), both ends included.
struct band {
  static constexpr std::ptrdiff_t far = std::ptrdiff_t{1} << 60;
  std::ptrdiff_t lowest = -far, highest = far;
};

/// Of alignments of `rows` letters with `columns` letters, all of both, that score at least
/// `score`.
[[nodiscard]] inline band band_of_paths(std::ptrdiff_t rows, std::ptrdiff_t columns,
                                        std::int64_t score, const scoring& s) {
  // With u letters of the query in gaps, there are rows - u pairs, and u + columns - rows letters
  // of the reference in gaps.
  const std::int64_t spare = rows * static_cast<std::int64_t>(s.match) +
                             (rows - columns) * static_cast<std::int64_t>(s.extend) - score;
  const std::ptrdiff_t u = std::clamp<std::ptrdiff_t>(
      spare / (s.match + 2 * s.extend), std::max<std::ptrdiff_t>(rows - columns, 0), rows);
  return {-u, u + columns - rows};
}

/// Of alignments of at most `rows` letters from the beginning of the query with any number from the
/// beginning of the reference that score at least `score`.
[[nodiscard]] inline band band_of_beginnings(std::ptrdiff_t rows, std::int64_t score,
                                             const scoring& s) {
  const std::int64_t spare =
      std::max<std::int64_t>(rows * static_cast<std::int64_t>(s.match) - score, 0);
  return {-(spare / (s.match + s.extend)), spare / s.extend};
}

}  // namespace align
