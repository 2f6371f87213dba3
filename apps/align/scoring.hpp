// SPDX-License-Identifier: Apache-2.0
// What an alignment is worth.
#pragma once

#include <cstdint>

namespace align {

/// A pair of equal letters adds `match`, any other pair adds `mismatch` (not positive); a gap of k
/// residues costs open + (k-1)*extend. Linear gaps are open == extend.
struct scoring {
  int match = 1;
  int mismatch = -1;
  int open = 2;
  int extend = 2;

  [[nodiscard]] bool linear() const { return open == extend; }
  [[nodiscard]] std::int64_t gap(std::int64_t length) const {
    return length == 0 ? 0 : open + (length - 1) * static_cast<std::int64_t>(extend);
  }
};

/// Largest magnitude of each parameter; with it, and lengths below max_score / largest parameter,
/// 32 bits never overflow.
inline constexpr int max_parameter = 10'000;
inline constexpr std::int64_t max_score = 1'000'000'000;

/// True if no cell of a comparison of these lengths can leave +-max_score.
[[nodiscard]] constexpr bool scores_fit(const scoring& s, std::int64_t m, std::int64_t n,
                                        bool global) {
  const std::int64_t shorter = m < n ? m : n;
  if (shorter * s.match > max_score || shorter * -static_cast<std::int64_t>(s.mismatch) > max_score)
    return false;
  return !global ||
         (m + n + 2) * static_cast<std::int64_t>(s.open > s.extend ? s.open : s.extend) <=
             max_score;
}

}  // namespace align
