// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/settle_clock.hpp"

#include <gtest/gtest.h>

namespace strata::net::ucx {
namespace {

constexpr std::int64_t begin_ns = 1'000'000'000;

TEST(settle_clock, rings_once_soon_after_the_last_word) {
  settle_clock c;
  EXPECT_FALSE(c.rings(begin_ns));
  EXPECT_FALSE(c.goes_on());
  c.start(begin_ns);
  EXPECT_EQ(c.until_ns(), begin_ns + settle_clock::soon_ns);
  EXPECT_FALSE(c.rings(c.until_ns() - 1));
  EXPECT_TRUE(c.rings(c.until_ns()));
  EXPECT_FALSE(c.is_running());
  EXPECT_FALSE(c.goes_on());
}

TEST(settle_clock, waits_for_the_end_of_a_conversation) {
  settle_clock c;
  c.start(begin_ns);
  constexpr std::int64_t silent_from_ns = begin_ns + settle_clock::late_ns / 4;
  std::int64_t t = begin_ns;
  for (; t < silent_from_ns; t += 10'000) {
    EXPECT_TRUE(c.goes_on());
    EXPECT_FALSE(c.rings(t));
  }
  while (!c.rings(t)) t += 10'000;
  EXPECT_GE(t, silent_from_ns + settle_clock::soon_ns / 2);
  EXPECT_LE(t, begin_ns + settle_clock::late_ns);
}

// Without being started again: that would wake the sender once more.
TEST(settle_clock, rings_now_and_then_in_one_without_end) {
  settle_clock c;
  constexpr std::int64_t end_ns = begin_ns + 100 * settle_clock::late_ns;
  int up = 0, rang = 0;
  std::int64_t rang_ns = begin_ns;
  c.start(begin_ns);
  for (std::int64_t t = begin_ns; t < end_ns; t += 10'000) {
    ASSERT_TRUE(c.goes_on());
    up += t >= c.until_ns();
    if (!c.rings(t)) continue;
    ++rang;
    EXPECT_LE(t - rang_ns, settle_clock::late_ns + 10'000);
    rang_ns = t;
  }
  EXPECT_GE(rang, 90);
  EXPECT_LE(up, rang + 4);
  // Once more after the last word, and then no more.
  ASSERT_TRUE(c.is_running());
  EXPECT_LE(c.until_ns(), end_ns + settle_clock::late_ns);
  EXPECT_TRUE(c.rings(end_ns + settle_clock::late_ns));
  std::int64_t t = end_ns + settle_clock::late_ns;
  while (c.is_running()) (void)c.rings(t += settle_clock::late_ns);
  EXPECT_LE(t, end_ns + 2 * settle_clock::late_ns);
}

}  // namespace
}  // namespace strata::net::ucx
