// SPDX-License-Identifier: Apache-2.0
#include "apps/align/significance.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace align {
namespace {

// By so much gaps may let chance go further. Beyond, scores of random sequences grow with their
// length, not with its logarithm (Arratia and Waterman, doi:10.1214/aoap/1177005208), or so nearly
// that short ones do not tell.
constexpr double stretch = 1.25;
// Below, chance goes so far even without gaps that the trial's sequences are too short to tell.
// Found, as that the quarter is enough, by comparing sequences of 20,000 letters.
constexpr double lambda_match_min = 0.6;

// lambda > 0 with 1/4 e^(lambda*match) + 3/4 e^(lambda*mismatch) = 1. 0: there is none, as the mean
// pair score is not negative.
double lambda_of(const scoring& s) {
  if (s.match + 3 * s.mismatch >= 0) return 0;
  const auto excess = [&](double lambda) {
    return 0.25 * std::exp(lambda * s.match) + 0.75 * std::exp(lambda * s.mismatch) - 1;
  };
  double low = 0, high = std::log(4.0) / s.match;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (excess(middle) > 0 ? high : low) = middle;
  }
  return low;
}

std::int32_t score_of(double lambda, double cells) {
  const double score = std::ceil(stretch * std::log(1000 * cells + 1) / lambda);
  return static_cast<std::int32_t>(std::min(score, static_cast<double>(max_score)));
}

constexpr std::size_t trial_letters = 1000;
using trial_sequence = std::array<std::uint8_t, trial_letters>;

// The same ones each time. (Knuth's linear congruential generator; its highest bits are the best.)
trial_sequence next_trial(std::uint64_t& state) {
  trial_sequence letters;
  for (std::uint8_t& letter : letters) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    letter = static_cast<std::uint8_t>(state >> 62);
  }
  return letters;
}

// The best local alignment of two. Its scores are far from what 32 bits hold.
std::int32_t trial_score(const scoring& s, const trial_sequence& a, const trial_sequence& b) {
  std::array<std::int32_t, trial_letters> scores{}, gaps{};
  std::int32_t best = 0;
  for (const std::uint8_t letter : a) {
    std::int32_t diagonal = 0, left = 0, gap_left = 0;
    std::int32_t *above = scores.data(), *gap_above = gaps.data();
    for (const std::uint8_t other : b) {
      // A gap that is worth less than nothing is as good as none.
      const std::int32_t across = left - s.open, down = *above - s.open;
      gap_left = gap_left > s.extend ? gap_left - s.extend : 0;
      gap_left = gap_left > across ? gap_left : across;
      *gap_above = *gap_above > s.extend ? *gap_above - s.extend : 0;
      *gap_above = *gap_above > down ? *gap_above : down;
      left = diagonal + (letter == other ? s.match : s.mismatch);
      left = left > gap_left ? left : gap_left;
      left = left > *gap_above ? left : *gap_above;
      left = left > 0 ? left : 0;
      diagonal = *above;
      best = left > best ? left : best;
      *above++ = left;
      ++gap_above;
    }
  }
  return best;
}

// How much higher random sequences score with gaps than without.
double tried_stretch(const scoring& s) {
  scoring without_gaps = s;
  without_gaps.open = without_gaps.extend = static_cast<int>(trial_letters) * max_parameter;
  std::int32_t with = 0, without = 0;
  std::uint64_t state = 1;
  for (int pair = 0; pair < 4; ++pair) {
    const trial_sequence a = next_trial(state), b = next_trial(state);
    with += trial_score(s, a, b);
    without += trial_score(without_gaps, a, b);
  }
  return static_cast<double>(with) / without;
}

}  // namespace

std::int32_t chance_score(const scoring& s, double cells) {
  const double lambda = lambda_of(s);
  if (lambda * s.match < lambda_match_min) return 0;
  return tried_stretch(s) > stretch ? 0 : score_of(lambda, cells);
}

std::int32_t chance_score_untried(const scoring& s, double cells) {
  const double lambda = lambda_of(s);
  return lambda > 0 ? score_of(lambda, cells) : 0;
}

}  // namespace align
