// SPDX-License-Identifier: Apache-2.0
#include "base/values.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "strata/error.hpp"

namespace {

using strata::user_error;

TEST(parse_whole, takes_digits_in_range_and_nothing_else) {
  EXPECT_EQ(strata::parse_whole("1", 1, 4096), 1u);
  EXPECT_EQ(strata::parse_whole("4096", 1, 4096), 4096u);
  constexpr auto largest = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(strata::parse_whole("18446744073709551615", 0, largest), largest);
  for (const char* bad :
       {"", "0", "4097", "-1", "+1", " 1", "1 ", "1.0", "0x1", "two", "18446744073709551617"}) {
    EXPECT_THROW(strata::parse_whole(bad, 1, 4096), user_error) << bad;
  }
}

TEST(parse_bytes, knows_suffixes) {
  constexpr std::uint64_t high = std::uint64_t{1} << 40;
  EXPECT_EQ(strata::parse_bytes("123", 0, high), 123u);
  EXPECT_EQ(strata::parse_bytes("16K", 0, high), 16u << 10);
  EXPECT_EQ(strata::parse_bytes("16k", 0, high), 16u << 10);
  EXPECT_EQ(strata::parse_bytes("2MiB", 0, high), 2u << 20);
  EXPECT_EQ(strata::parse_bytes("3G", 0, high), std::uint64_t{3} << 30);
  for (const char* bad :
       {"", "K", "1KB", "1T", "-1K", "1 K", "99999999999999999999", "1.5M", "18014398509481985K"}) {
    EXPECT_THROW(strata::parse_bytes(bad, 0, high), user_error) << bad;
  }
  EXPECT_THROW(strata::parse_bytes("15K", 16 << 10, 1 << 30), user_error);
  EXPECT_THROW(strata::parse_bytes("2G", 16 << 10, 1 << 30), user_error);
}

TEST(parse_bytes, reads_back_what_is_printed) {
  for (const std::uint64_t bytes :
       {0ull, 1ull, 1000ull, 1024ull, 1025ull, 3ull << 20, 7ull << 30}) {
    EXPECT_EQ(strata::parse_bytes(strata::bytes_to_text(bytes), 0, ~0ull), bytes);
  }
  EXPECT_EQ(strata::bytes_to_text(256 << 10), "256K");
}

TEST(parse_switch, knows_both_answers) {
  for (const char* yes : {"yes", "true", "on", "1"}) EXPECT_TRUE(strata::parse_switch(yes));
  for (const char* no : {"no", "false", "off", "0"}) EXPECT_FALSE(strata::parse_switch(no));
  EXPECT_THROW(strata::parse_switch("maybe"), user_error);
  EXPECT_THROW(strata::parse_switch(""), user_error);
}

TEST(nearest, ranks_likely_names_first) {
  const std::vector<std::string> names{"workers", "stats", "stack-bytes", "bind"};
  EXPECT_EQ(strata::nearest("worker", names).front(), "workers");
  EXPECT_EQ(strata::nearest("stack", names).front(), "stack-bytes");
  EXPECT_EQ(strata::nearest("stat", names).front(), "stats");
  EXPECT_TRUE(strata::nearest("zzzzzzzz", names).empty());
}

TEST(trimmed, removes_blanks_at_both_ends) {
  EXPECT_EQ(strata::trimmed("  a b\t\r"), "a b");
  EXPECT_EQ(strata::trimmed(" \t "), "");
  EXPECT_EQ(strata::trimmed(""), "");
}

}  // namespace
