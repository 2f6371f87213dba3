// SPDX-License-Identifier: Apache-2.0
#include "apps/align/significance.hpp"

#include <cmath>

namespace align {

std::int32_t chance_score(const scoring& s, double cells) {
  // lambda > 0 with 1/4 e^(lambda*match) + 3/4 e^(lambda*mismatch) = 1; it exists if the mean pair
  // score is negative.
  if (s.match + 3 * s.mismatch >= 0) return 0;
  const auto excess = [&](double lambda) {
    return 0.25 * std::exp(lambda * s.match) + 0.75 * std::exp(lambda * s.mismatch) - 1;
  };
  double low = 0, high = std::log(4.0) / s.match;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (excess(middle) > 0 ? high : low) = middle;
  }
  return static_cast<std::int32_t>(std::ceil(1.25 * std::log(1000 * cells + 1) / low));
}

}  // namespace align
