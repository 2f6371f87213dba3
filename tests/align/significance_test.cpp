// SPDX-License-Identifier: Apache-2.0
// What chance reaches: where that can be said, and within which bounds.
#include "apps/align/significance.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace align_test {
namespace {

using align::chance_score;
using align::chance_score_untried;
using align::scoring;

TEST(chance, is_about_the_logarithm_of_the_cells) {
  // lambda = ln 3; 1.25 * ln(1e11 + 1) / lambda = 28.8.
  EXPECT_EQ(chance_score({1, -1, 2, 2}, 1e8), 29);
  EXPECT_EQ(chance_score({100, -100, 200, 200}, 1e8), 2882);
  EXPECT_EQ(chance_score_untried({1, -1, 2, 2}, 1e8), 29);
  EXPECT_EQ(chance_score_untried({1, -1, 2, 2}, 1e14), 45);
  for (const scoring& usual : {scoring{1, -2, 2, 2}, {1, -3, 7, 2}, {2, -3, 7, 2}, {5, -4, 16, 6}})
    EXPECT_GT(chance_score(usual, 1e8), 17 * usual.match) << usual.match << usual.mismatch;
}

TEST(chance, is_not_known_where_mismatches_or_gaps_are_cheap) {
  for (const scoring& cheap : {scoring{1, -1, 1, 1},
                               {3, -1, 9, 9},
                               {2, -1, 2, 2},
                               {2, -1, 8, 8},
                               {5, -2, 40, 40},
                               {5, -4, 8, 6},
                               {2, -3, 2, 1},
                               {1, -2, 1, 1},
                               {9998, -3333, 5000, 5000}})
    EXPECT_EQ(chance_score(cheap, 1e8), 0) << cheap.match << ' ' << cheap.mismatch;
}

TEST(chance, fits_between_0_and_the_largest_score) {
  constexpr int most = align::max_parameter;
  for (const scoring& s : {scoring{9998, -3333, 5000, 5000},
                           {most, -3334, most, most},
                           {1, -most, 1, 1},
                           {most, -most, most, most},
                           {most, 0, 1, 1},
                           {1, 0, most, most}}) {
    const double many_cells = 1e18;
    for (const std::int32_t score :
         {chance_score(s, many_cells), chance_score_untried(s, many_cells),
          chance_score_untried(s, 1)}) {
      EXPECT_GE(score, 0) << s.match << ' ' << s.mismatch;
      EXPECT_LE(score, align::max_score) << s.match << ' ' << s.mismatch;
    }
  }
  EXPECT_EQ(chance_score_untried({9998, -3333, 5000, 5000}, 1e14), align::max_score);
}

}  // namespace
}  // namespace align_test
