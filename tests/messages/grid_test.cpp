// SPDX-License-Identifier: Apache-2.0
#include "strata/grid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <optional>
#include <vector>

#include "strata/error.hpp"

namespace strata {
namespace {

TEST(grids, refuse_what_they_do_not_have) {
  const grid most{.extent = {65'535, 65'537}};  // 2^32 - 1
  EXPECT_EQ(most.size(), UINT32_MAX);
  EXPECT_EQ(most.coordinates(UINT32_MAX - 1)[1], 65'536U);
  for (const grid& g : {grid{.extent = {65'536, 65'536}}, grid{.extent = {1U << 31, 2}},
                        grid{.extent = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}}}) {
    EXPECT_THROW((void)g.size(), misuse_error);
    EXPECT_THROW((void)g.coordinates(0), misuse_error);
    EXPECT_THROW((void)g.rank(std::array<std::uint32_t, 4>{}), misuse_error);
    EXPECT_THROW((void)g.neighbours(0), misuse_error);
  }
  const grid g{.extent = {4, 5}};
  EXPECT_EQ(g.rank(std::array{1U, 2U}), 7U);
  EXPECT_EQ(g.rank(g.coordinates(7)), 7U);
  EXPECT_THROW((void)g.rank(std::array{1U, 2U, 3U}), misuse_error);
  EXPECT_THROW((void)g.rank(std::array{1U, 2U, 0U, 0U, 1U}), misuse_error);
  EXPECT_THROW((void)g.rank(std::array{1U}), misuse_error);
  EXPECT_THROW((void)g.rank(std::array{1U, 5U}), misuse_error);
  EXPECT_THROW((void)g.shift(20, 0, 1), misuse_error);
  EXPECT_THROW((void)g.shift(7, 2, 1), misuse_error);
  EXPECT_THROW((void)grid::balanced(0, 2), misuse_error);
  EXPECT_THROW((void)grid::balanced(6, 0), misuse_error);
  EXPECT_THROW((void)grid::balanced(6, 5), misuse_error);
}

TEST(grids, shift_by_any_number_of_steps) {
  const grid g{.extent = {4, 5}, .wraps = {false, true}};
  constexpr std::uint32_t here = 7;  // 1, 2
  EXPECT_EQ(g.shift(here, 0, 1), 12U);
  EXPECT_EQ(g.shift(here, 0, -1), 2U);
  EXPECT_EQ(g.shift(here, 0, -2), std::nullopt);
  EXPECT_EQ(g.shift(here, 0, 2), 17U);
  EXPECT_EQ(g.shift(here, 0, 3), std::nullopt);
  EXPECT_EQ(g.shift(here, 1, 3), 5U);
  EXPECT_EQ(g.shift(here, 1, -3), 9U);
  EXPECT_EQ(g.shift(here, 1, 5), here);
  for (const int steps : {INT_MAX, INT_MIN}) {
    EXPECT_EQ(g.shift(here, 0, steps), std::nullopt);
    EXPECT_EQ(g.shift(here, 1, steps), 9U);
  }
  // Both directions, of which neighbours() makes one.
  const grid ring{.extent = {2}, .wraps = {true}};
  EXPECT_EQ(ring.shift(0, 0, 1), 1U);
  EXPECT_EQ(ring.shift(0, 0, -1), 1U);
  EXPECT_EQ(ring.neighbours(0), std::vector<std::uint32_t>{1});
  EXPECT_EQ((grid{.extent = {1}, .wraps = {true}}.shift(0, 0, -1)), 0U);
  // Dimensions whose coordinates have more bits than an int.
  const grid longest{.extent = {UINT32_MAX}, .wraps = {true}};
  EXPECT_EQ(longest.shift(UINT32_MAX - 1, 0, 1), 0U);
  EXPECT_EQ(longest.shift(0, 0, -1), UINT32_MAX - 1);
  const grid long_ring{.extent = {3'000'000'000U}, .wraps = {true}};
  EXPECT_EQ(long_ring.neighbours(2'999'999'999U), (std::vector<std::uint32_t>{2'999'999'998U, 0}));
  EXPECT_EQ(long_ring.neighbours(0), (std::vector<std::uint32_t>{2'999'999'999U, 1}));
  EXPECT_EQ(long_ring.neighbours(2'000'000'000U),
            (std::vector<std::uint32_t>{1'999'999'999U, 2'000'000'001U}));
}

// What is sent up arrives from below.
TEST(grids, shift_back_to_where_they_came_from) {
  const grid g{.extent = {3, 1, 2, 4}, .wraps = {true, false, true, false}};
  for (std::uint32_t rank = 0; rank < g.size(); ++rank) {
    for (unsigned d = 0; d < g.dimensions(); ++d) {
      for (int steps = -5; steps <= 5; ++steps) {
        if (const auto there = g.shift(rank, d, steps)) {
          EXPECT_EQ(g.shift(*there, d, -steps), rank);
        }
      }
    }
  }
}

TEST(grids, are_balanced) {
  using extents = std::array<std::uint32_t, 4>;
  EXPECT_EQ(grid::balanced(12, 1).extent, (extents{12}));
  EXPECT_EQ(grid::balanced(12, 2).extent, (extents{4, 3}));
  EXPECT_EQ(grid::balanced(12, 3).extent, (extents{3, 2, 2}));
  EXPECT_EQ(grid::balanced(72, 3).extent, (extents{6, 4, 3}));
  EXPECT_EQ(grid::balanced(32, 4).extent, (extents{4, 2, 2, 2}));
  EXPECT_EQ(grid::balanced(88, 3).extent, (extents{11, 4, 2}));
  EXPECT_EQ(grid::balanced(7, 3).extent, (extents{7, 1, 1}));
  EXPECT_EQ(grid::balanced(1, 4).extent, (extents{1, 1, 1, 1}));
  EXPECT_EQ(grid::balanced(1U << 31, 2).extent, (extents{1U << 16, 1U << 15}));
  EXPECT_EQ(grid::balanced(UINT32_MAX, 2).extent, (extents{65'537, 65'535}));
  EXPECT_EQ(grid::balanced(UINT32_MAX - 4, 2).extent, (extents{UINT32_MAX - 4, 1}));  // a prime
  for (std::uint32_t n = 1; n < 300; ++n) {
    for (unsigned d = 1; d <= 4; ++d) {
      const grid g = grid::balanced(n, d);
      EXPECT_EQ(g.size(), n);
      EXPECT_EQ(g.dimensions(), d);
      EXPECT_TRUE(std::is_sorted(g.extent.rbegin(), g.extent.rend())) << n << " in " << d;
    }
  }
}

}  // namespace
}  // namespace strata
