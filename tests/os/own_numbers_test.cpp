// SPDX-License-Identifier: Apache-2.0
#include "os/own_numbers.hpp"

#include <gtest/gtest.h>

namespace strata::os {
namespace {

TEST(own_numbers, are_found_within_bounds_and_nowhere_else) {
  EXPECT_EQ(next_own_number(0), -1);
  const int low = copy_out_of_the_way(0);
  const int high = copy_out_of_the_way(0, low + 70);
  ASSERT_GE(low, 0);
  ASSERT_GE(high, low + 70);
  const auto n = static_cast<unsigned>(low), m = static_cast<unsigned>(high);
  EXPECT_EQ(next_own_number(0), low);
  EXPECT_EQ(next_own_number(0, n - 1), -1);
  EXPECT_EQ(next_own_number(0, n), low);
  EXPECT_EQ(next_own_number(n + 1), high);
  EXPECT_EQ(next_own_number(n + 1, m - 1), -1);
  EXPECT_EQ(next_own_number(n + 1, m), high);
  EXPECT_EQ(next_own_number(m + 1), -1);
  EXPECT_EQ(next_own_number(~0U), -1);
  close_own(low);
  EXPECT_EQ(next_own_number(0), high);
  close_all_own();
  EXPECT_EQ(next_own_number(0), -1);
  EXPECT_FALSE(is_own_number(high));
}

}  // namespace
}  // namespace strata::os
