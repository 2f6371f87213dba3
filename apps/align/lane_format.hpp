// SPDX-License-Identifier: Apache-2.0
// How scores travel between tiles: as bytes while they are small (score - 128), else as 32-bit
// integers.
//
// A tile may compute in 8, 16 or 32 bits, as narrow as is provably exact:
//   8 bits   local alignments only: score - 128, saturating at both ends. The lower end is the
//   local zero. If the upper end (255) was
//            touched, the tile is computed again in a wider format from the same input.
//   16 bits  score - base. Either base = 32768 and the lower end is the local zero, or base is
//   chosen so that no cell of the tile can
//            reach either end: from any border value a cell is at most one gap down the strip, or
//            one match per row up.
//   32 bits  the score itself; scores_fit() has been checked for the whole problem.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "apps/align/kernel.hpp"
#include "apps/align/scoring.hpp"

namespace align {

inline constexpr int byte_base = 128;
inline constexpr int byte_limit = 127;  // a lane that may have saturated

/// Lowest and highest of some scores.
struct score_range {
  std::int32_t low = std::numeric_limits<std::int32_t>::max();
  std::int32_t high = std::numeric_limits<std::int32_t>::min();

  void include(const std::int32_t* values, std::ptrdiff_t count) {
    std::int32_t lo = low, hi = high;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      lo = std::min(lo, values[i]);
      hi = std::max(hi, values[i]);
    }
    low = lo;
    high = hi;
  }
};

[[nodiscard]] inline bool bytes_suffice(const scoring& s) {
  return s.match < 100 && s.mismatch >= -127 && s.open <= 127 && s.extend <= 127;
}

/// The base for 16-bit lanes, or false if 32 bits are needed. `rows`: of the strip.
[[nodiscard]] inline bool base_for_16_bits(const scoring& s, const score_range& range,
                                           std::ptrdiff_t rows, bool local, std::int32_t& base) {
  constexpr std::int64_t half = 32768;
  if (std::max({s.match, -s.mismatch, s.open, s.extend}) >= half) return false;
  const std::int64_t lowest = range.low - s.gap(rows + 1) - s.open;
  const std::int64_t highest = range.high + rows * static_cast<std::int64_t>(s.match);
  if (local && lowest <= 0) {
    base = half;
    return highest < 2 * half - 1;
  }
  if (highest - lowest >= 2 * half - 2) return false;
  base = static_cast<std::int32_t>(lowest + half - 1);
  return true;
}

template <class T>
void to_lanes(const std::int32_t* from, void* to, std::ptrdiff_t count, std::int32_t base) {
  auto* out = static_cast<T*>(to);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    // Wider than both: "none" is the lowest value there is.
    const std::int64_t above = std::int64_t{from[i]} - base;
    out[i] = static_cast<T>(std::clamp<std::int64_t>(above, std::numeric_limits<T>::min(),
                                                     std::numeric_limits<T>::max()));
  }
}

template <class T>
void from_lanes(const void* from, std::int32_t* to, std::ptrdiff_t count, std::int32_t base) {
  const auto* in = static_cast<const T*>(from);
  for (std::ptrdiff_t i = 0; i < count; ++i) to[i] = in[i] + base;
}

}  // namespace align
