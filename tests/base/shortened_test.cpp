// SPDX-License-Identifier: Apache-2.0
#include "base/shortened.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using strata::in_quotes;
using strata::shortened;

TEST(shortened_text, is_cut_between_characters) {
  EXPECT_EQ(shortened("", 10), "");
  EXPECT_EQ(shortened("0123456789", 10), "0123456789");
  EXPECT_EQ(shortened("0123456789a", 10), "0123456...");
  EXPECT_EQ(shortened("01234\u00e9\u00e9\u00e9", 10), "01234\u00e9...");
  EXPECT_EQ(shortened("012345\u00e9\u00e9\u00e9", 10), "012345...");
  EXPECT_EQ(shortened(std::string(100, '\x80'), 10), "...");
}

TEST(shortened_text, of_others_is_quoted_in_brief) {
  EXPECT_EQ(in_quotes("two"), "'two'");
  EXPECT_EQ(in_quotes(std::string(100, 'x')), "'" + std::string(100, 'x') + "'");
  EXPECT_EQ(in_quotes(std::string(65'536, 'x')), "'" + std::string(97, 'x') + "...'");
}

}  // namespace
