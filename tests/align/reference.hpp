// SPDX-License-Identifier: Apache-2.0
// The plainest possible dynamic programming, against which everything else is tested, and seeded
// sequences.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "apps/align/scoring.hpp"
#include "apps/align/sequence.hpp"

namespace align_test {

struct expected {
  std::int64_t score = 0, end_i = 0, end_j = 0, count = 0;
};

inline bool same_letter(const align::sequence& a, const align::sequence& b, std::int64_t i,
                        std::int64_t j) {
  const auto x = a.codes[static_cast<std::size_t>(i)];
  return x < 4 && x == b.codes[static_cast<std::size_t>(j)];
}

/// The inner loops: rows 1 to m, columns 1 to n. One thread's own memory and nothing but loads and
/// stores, of which ThreadSanitizer need not hear: its builds spent most of these tests' time here.
__attribute__((no_sanitize("thread"))) inline expected fill_matrix(
    const std::uint8_t* a, std::int64_t m, const std::uint8_t* b, std::int64_t n,
    const align::scoring& s, bool local, std::int64_t* h, std::int64_t* f) {
  constexpr std::int64_t never = -1'000'000'000'000;
  for (std::int64_t j = 0; j <= n; ++j) {
    h[j] = local ? 0 : -s.gap(j);
    f[j] = never;
  }
  expected out;
  for (std::int64_t i = 1; i <= m; ++i) {
    std::int64_t diagonal = h[0], e = never;
    h[0] = local ? 0 : -s.gap(i);
    for (std::int64_t j = 1; j <= n; ++j) {
      const bool same = a[i - 1] < 4 && a[i - 1] == b[j - 1];
      const std::int64_t opened_e = h[j - 1] - s.open, opened_f = h[j] - s.open;
      e = e - s.extend > opened_e ? e - s.extend : opened_e;
      f[j] = f[j] - s.extend > opened_f ? f[j] - s.extend : opened_f;
      std::int64_t best = diagonal + (same ? s.match : s.mismatch);
      best = best > e ? best : e;
      best = best > f[j] ? best : f[j];
      if (local && best < 0) best = 0;
      diagonal = h[j];
      h[j] = best;
      if (best > out.score) {
        out.score = best;
        out.end_i = i;
        out.end_j = j;
        out.count = 0;
      }
      if (best == out.score) ++out.count;
    }
  }
  return out;
}

/// Columns [first, last) of b only.
inline expected reference(const align::sequence& a, const align::sequence& b,
                          const align::scoring& s, bool local, std::int64_t first = 0,
                          std::int64_t last = -1) {
  const auto m = static_cast<std::int64_t>(a.size());
  const std::int64_t n = (last < 0 ? static_cast<std::int64_t>(b.size()) : last) - first;
  std::vector<std::int64_t> h(static_cast<std::size_t>(n) + 1), f(h.size());
  expected out =
      fill_matrix(a.codes.data(), m, b.codes.data() + first, n, s, local, h.data(), f.data());
  out.end_j += first;
  if (!local) out.score = h[static_cast<std::size_t>(n)];
  if (local && out.score == 0) out = {0, 0, 0, m * n};
  return out;
}

/// The generator of the ground truth: SplitMix64, a letter from the two top bits.
inline std::string seeded_letters(std::uint64_t seed, std::size_t length) {
  std::string out;
  for (std::size_t i = 0; i < length; ++i) {
    seed += 0x9E3779B97F4A7C15u;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    out += "ACGT"[z >> 62];
  }
  return out;
}

/// A relative of `letters`: substitutions, insertions, deletions and the odd unknown base.
inline std::string mutated(std::string letters, std::mt19937& random, int percent) {
  std::string out;
  for (const char c : letters) {
    const auto dice = static_cast<int>(random() % 300);
    if (dice < percent)
      out += "ACGTN"[random() % 5];
    else if (dice < 2 * percent)
      out += {c, "ACGT"[random() % 4]};
    else if (dice >= 3 * percent)
      out += c;
  }
  return out.empty() ? "A" : out;
}

}  // namespace align_test
