// SPDX-License-Identifier: Apache-2.0
// Over which network two nodes talk.
#include "cluster/reach.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace strata::cluster {
namespace {

using its_number = std::optional<std::uint16_t>;

// Three nodes on hosts of their own; all are on all three networks, of which the last is the
// fastest and the first the next.
class three_networks : public testing::Test {
 protected:
  three_networks() {
    for (node_id n = 0; n < 3; ++n) {
      launch::address where;
      for (const std::uint32_t megabits : {2000U, 1000U, 10'000U})
        where.doors.push_back({"h", static_cast<std::uint16_t>(n + 1), megabits, 9});
      who.set(n, n, where);
    }
  }
  static launch::job_description job() {
    launch::job_description j;
    j.capacity = 3;
    return j;
  }
  reach who{job(), false, true};
};

TEST_F(three_networks, two_nodes_use_the_fastest_and_spare_the_next) {
  EXPECT_EQ(who.network(0, 1), its_number(2));
  EXPECT_EQ(who.spare_network(0, 1), its_number(0));
  EXPECT_EQ(who.towards(0, 1).port, 2);
  EXPECT_EQ(who.spare_towards(0, 1).port, 9);
}

TEST_F(three_networks, what_is_closed_between_two_is_open_for_others) {
  who.close({0, 1, 2});
  for (const auto& [a, b] : {std::pair<node_id, node_id>{0, 1}, {1, 0}})
    EXPECT_EQ(who.network(a, b), its_number(0));
  EXPECT_EQ(who.network(0, 2), its_number(2));
  EXPECT_GT(who.cost(0, 1)->cost_ns, who.cost(0, 2)->cost_ns);
}

// They have tried no third one.
TEST_F(three_networks, where_two_are_closed_no_connection_is) {
  who.close({0, 1, 2});
  who.close({0, 1, 0});
  EXPECT_EQ(who.network(0, 1), std::nullopt);
  EXPECT_EQ(who.towards(0, 1).port, 0);
  EXPECT_FALSE(who.cost(0, 1));
  EXPECT_TRUE(who.cost(1, 2));
}

TEST_F(three_networks, what_was_measured_does_not_open_what_is_closed) {
  who.close({0, 1, 2});
  who.set_costs({{{{1, 2, 20, 60}}, {}, {}}, {0, 1, 2}});  // between their hosts, by others
  EXPECT_EQ(who.network(0, 1), its_number(0));
}

}  // namespace
}  // namespace strata::cluster
