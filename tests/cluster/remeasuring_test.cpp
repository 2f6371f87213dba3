// SPDX-License-Identifier: Apache-2.0
// Which of the costs that are measured again and again are believed.
#include "cluster/ways/remeasuring.hpp"

#include <gtest/gtest.h>

#include "cluster/ways/link_costs.hpp"

namespace strata::cluster {
namespace {

constexpr std::uint8_t fast = 60;  // a stream of 1 GB/s

way_plan::measurement of_us(std::int64_t cost_us, node_id by = 0, node_id other = 1,
                            std::uint16_t network = 0) {
  return {by, {other, network, to_step(cost_us * 1000), fast}};
}

TEST(believed_costs, are_other_ones_when_two_surveys_say_so) {
  believed_costs c([](node_id n) { return n; });
  c.begin_with(of_us(100));
  c.begin_with(of_us(1));  // of two hosts the first counts
  for (const std::int64_t cost_us : {100, 140, 70, 1000, 100, 1000, 10, 1000, 100})
    EXPECT_FALSE(c.look_at(of_us(cost_us))) << cost_us;
  EXPECT_TRUE(c.changed().empty());
  EXPECT_FALSE(c.look_at(of_us(2000)));
  EXPECT_TRUE(c.look_at(of_us(8000)));
  // The one nearer to what was believed.
  ASSERT_EQ(c.changed().size(), 1U);
  EXPECT_EQ(c.changed()[0], of_us(2000));
  EXPECT_FALSE(c.look_at(of_us(8000))) << "it takes two again";
  EXPECT_FALSE(c.look_at(of_us(2000)));
  EXPECT_FALSE(c.look_at(of_us(100, 1, 0))) << "whoever of the two measures";
  EXPECT_TRUE(c.look_at(of_us(50)));
  EXPECT_EQ(c.changed()[0], of_us(100, 1, 0));
}

TEST(believed_costs, of_what_nobody_had_measured_are_believed_at_once) {
  believed_costs c([](node_id n) { return static_cast<std::uint16_t>(n / 2); });
  c.begin_with(of_us(100, 0, 2));
  EXPECT_TRUE(c.look_at(of_us(50, 0, 4)));
  EXPECT_FALSE(c.look_at(of_us(60, 5, 1))) << "the same two hosts";
  EXPECT_TRUE(c.look_at(of_us(100, 0, 2, 1))) << "another network";
  EXPECT_EQ(c.changed().size(), 2U);
}

TEST(believed_costs, are_no_more_than_a_plan_has_room_for) {
  believed_costs c([](node_id n) { return n; });
  std::size_t believed = 0;
  for (unsigned a = 0; a < 100; ++a) {
    for (unsigned b = 0; b < a; ++b)
      believed += c.look_at(of_us(10, static_cast<node_id>(a), static_cast<node_id>(b))) ? 1 : 0;
  }
  EXPECT_EQ(believed, way_plan::measured_max);
  EXPECT_EQ(c.changed().size(), way_plan::measured_max);
}

}  // namespace
}  // namespace strata::cluster
