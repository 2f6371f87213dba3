// SPDX-License-Identifier: Apache-2.0
#include "cluster/work/victims.hpp"

#include <gtest/gtest.h>

#include <set>

namespace strata::cluster {
namespace {

constexpr node_id all_nodes = 8;
constexpr std::uint64_t seed = 7;
constexpr int choices = 200;

std::set<node_id> chosen(victims& from) {
  std::set<node_id> all;
  for (int i = 0; i < choices; ++i) all.insert(from.next());
  return all;
}

TEST(victims, are_all_others) {
  const membership all(3, all_nodes, {});
  victims of(all, all_nodes, false, seed);
  EXPECT_EQ(chosen(of), (std::set<node_id>{0, 1, 2, 4, 5, 6, 7}));
}

TEST(victims, are_of_this_host_first) {
  const membership all(3, all_nodes, {2, 5});
  victims of(all, all_nodes, false, seed);
  for (int round = 0; round < choices; ++round) {
    of.prefer_near(2);
    for (int i = 0; i < 2; ++i) {
      const node_id n = of.next();
      EXPECT_TRUE(n == 2 || n == 5) << n;
    }
  }
  EXPECT_EQ(chosen(of).size(), all_nodes - 1U);
}

TEST(victims, are_no_nodes_that_have_left_or_leave) {
  membership all(3, {all_nodes, all_nodes, all_nodes}, {}, {});
  all.set(1, standing::left);
  all.set(6, standing::leaving);
  victims of(all, all_nodes, false, seed);
  EXPECT_EQ(chosen(of), (std::set<node_id>{0, 2, 4, 5, 7}));
}

TEST(victims, are_nobody_where_nobody_else_works) {
  membership two(1, {2, 2, 2}, {}, {});
  two.set(0, standing::left);
  victims of(two, 2, false, seed);
  EXPECT_EQ(of.next(), 1);
  const membership alone(0, 1, {});
  victims nobody(alone, 1, false, seed);
  EXPECT_EQ(nobody.next(), 0);
}

TEST(victims, by_loads_begin_with_who_had_most_until_it_is_heard_of_again) {
  const membership all(0, all_nodes, {});
  victims of(all, all_nodes, true, seed);
  of.heard_of(4, 10);
  of.heard_of(2, 30);
  of.heard_of(6, 20);
  EXPECT_EQ(of.next(), 2);
  EXPECT_EQ(of.next(), 6);
  of.heard_of(2, 1);
  EXPECT_EQ(of.next(), 4);
  EXPECT_EQ(of.next(), 2);
  EXPECT_EQ(chosen(of).size(), all_nodes - 1U);
}

}  // namespace
}  // namespace strata::cluster
