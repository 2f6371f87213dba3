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

TEST(settle_clock, wakes_nobody_in_a_conversation_and_rings_when_that_is_over) {
  settle_clock c;
  constexpr std::int64_t pause_ns = 10'000, silent_from_ns = begin_ns + 100 * pause_ns * 100;
  std::int64_t rang_ns = 0;
  int started = 0, up = 0;
  for (std::int64_t t = begin_ns; rang_ns == 0; t += pause_ns) {
    ASSERT_LT(t, silent_from_ns + 2 * settle_clock::late_ns + 2 * pause_ns);
    if (t < silent_from_ns && !c.goes_on()) {
      c.start(t);
      ++started;
    }
    up += t >= c.until_ns();
    if (c.rings(t)) rang_ns = t;
  }
  EXPECT_GE(rang_ns, silent_from_ns);
  EXPECT_EQ(started, 1);
  EXPECT_LE(up, (silent_from_ns - begin_ns) / settle_clock::late_ns + 4);
}

TEST(settle_clock, begins_anew_with_a_short_pause) {
  settle_clock c;
  c.start(begin_ns);
  std::int64_t t = begin_ns;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(c.goes_on());
    t = c.until_ns();
    EXPECT_FALSE(c.rings(t));
  }
  t = c.until_ns();
  EXPECT_TRUE(c.rings(t));
  c.start(t);
  EXPECT_EQ(c.until_ns(), t + settle_clock::soon_ns);
}

}  // namespace
}  // namespace strata::net::ucx
