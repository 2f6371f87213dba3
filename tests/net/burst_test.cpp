// SPDX-License-Identifier: Apache-2.0
#include "net/burst.hpp"

#include <gtest/gtest.h>

namespace strata::net {
namespace {

constexpr std::int64_t gap_ns = 1'000'000;

class bursts : public testing::Test {
 protected:
  // One message more, `later` ticks after the last one was sent; sending takes `takes`.
  bool message(std::uint64_t later, std::uint64_t takes = 0) {
    now_ += later;
    const bool waits = b_.goes_on(now_);
    now_ += takes;
    b_.sent(now_);
    return waits;
  }
  const std::uint64_t gap_ = os::to_ticks(gap_ns);
  std::uint64_t now_ = 1000 * gap_;
  burst b_{gap_ns};
};

TEST_F(bursts, begin_with_the_fourth_message) {
  for (const bool waits : {false, false, false, true, true, true}) EXPECT_EQ(message(1), waits);
}

TEST_F(bursts, end_with_a_pause) {
  for (int i = 0; i < 6; ++i) (void)message(1);
  EXPECT_FALSE(b_.is_over(now_ + gap_ - 1));
  EXPECT_TRUE(b_.is_over(now_ + gap_));
  for (const std::uint64_t later : {gap_, std::uint64_t{1}, gap_ - 1}) EXPECT_FALSE(message(later));
  EXPECT_TRUE(message(gap_ - 1));
}

TEST_F(bursts, do_not_end_because_sending_takes_long) {
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(message(1, 10 * gap_));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(message(1, 10 * gap_));
}

TEST_F(bursts, are_not_over_for_who_read_the_clock_before_the_last_message) {
  const std::uint64_t before = now_;
  for (int i = 0; i < 6; ++i) (void)message(1);
  EXPECT_FALSE(b_.is_over(before));
  EXPECT_TRUE(b_.goes_on(before));
}

}  // namespace
}  // namespace strata::net
