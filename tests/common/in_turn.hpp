// SPDX-License-Identifier: Apache-2.0
// Which whole jobs one sanitizer leaves to the other one.
#pragma once
#include <gtest/gtest.h>

#include <string_view>

#include "slow_builds.hpp"

namespace strata::test {

// Of a table of tests, of what is done (a TEST_P) in which way (its parameter), where the same code
// runs in every field: the two sanitizers take turns as on a chessboard, so that each of them sees
// every row and every column. A row of one field is run by both, and all other builds run
// everything.
inline bool left_to_the_other_sanitizer() {
  if (!thread_sanitizer && !address_sanitizer) return false;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const testing::TestInfo* const here = all.current_test_info();
  const auto row_of = [](const testing::TestInfo* t) {
    const std::string_view name = t->name();
    return name.substr(0, name.find('/'));
  };
  int row = 0, column = 0, columns = 0;  // a suite has its tests row by row
  std::string_view before;
  for (int i = 0; i < all.current_test_suite()->total_test_count(); ++i) {
    const testing::TestInfo* const t = all.current_test_suite()->GetTestInfo(i);
    if (row_of(t) == row_of(here)) {
      if (t == here) column = columns;
      ++columns;
    } else if (columns == 0 && row_of(t) != before) {
      ++row;
    }
    before = row_of(t);
  }
  const bool black = (row + column) % 2 == 0;
  return columns > 1 && black != address_sanitizer;
}

}  // namespace strata::test
