// SPDX-License-Identifier: Apache-2.0
#include "cluster/work/unasked.hpp"

#include <gtest/gtest.h>

#include <set>

namespace strata::cluster {
namespace {

constexpr node_id nodes_of_all = 8;
constexpr node_id me = 3;
constexpr std::uint64_t seed_of_chance = 7;
constexpr std::int64_t one_us = 1'000;
constexpr std::int64_t begin_ns = 1'000'000'000;

// At most one each two microseconds.
std::multiset<node_id> sent_to(unasked& from, std::int64_t since_ns, std::int64_t until_ns) {
  std::multiset<node_id> all;
  for (std::int64_t now = since_ns; now < until_ns; now += 2 * one_us) {
    if (const auto to = from.next(now)) all.insert(*to);
    EXPECT_EQ(from.next(now + one_us), std::nullopt) << "so soon after the last";
  }
  return all;
}

std::set<node_id> set_of(const std::multiset<node_id>& all) { return {all.begin(), all.end()}; }

TEST(unasked, goes_to_all_others) {
  const membership all(me, nodes_of_all, {});
  unasked tokens(all, nodes_of_all, seed_of_chance);
  EXPECT_EQ(set_of(sent_to(tokens, begin_ns, begin_ns + 1'000 * one_us)),
            (std::set<node_id>{0, 1, 2, 4, 5, 6, 7}));
}

TEST(unasked, goes_to_one_node_once_in_ten_microseconds) {
  const membership two(0, 2, {});
  unasked tokens(two, 2, seed_of_chance);
  EXPECT_EQ(sent_to(tokens, begin_ns, begin_ns + 1'000 * one_us).size(), 100U);
}

TEST(unasked, does_not_go_to_who_has_enough) {
  const membership two(0, 2, {});
  unasked tokens(two, 2, seed_of_chance);
  EXPECT_EQ(tokens.next(begin_ns), 1);
  tokens.heard_of(1, 5, begin_ns + 20 * one_us);
  EXPECT_TRUE(sent_to(tokens, begin_ns + 20 * one_us, begin_ns + 120 * one_us).empty());
  EXPECT_EQ(tokens.next(begin_ns + 120 * one_us), 1) << "that was long ago";
  tokens.heard_of(1, 0, begin_ns + 130 * one_us);
  EXPECT_EQ(tokens.next(begin_ns + 130 * one_us), 1) << "nothing waits there";
}

TEST(unasked, goes_to_others_meanwhile) {
  const membership all(me, nodes_of_all, {});
  unasked tokens(all, nodes_of_all, seed_of_chance);
  for (std::int64_t now = begin_ns; now < begin_ns + 1'000 * one_us; now += 50 * one_us) {
    for (const node_id busy : {0, 1, 5}) tokens.heard_of(busy, 1, now);
    for (const node_id to : set_of(sent_to(tokens, now, now + 50 * one_us)))
      EXPECT_TRUE(to == 2 || to == 4 || to == 6 || to == 7) << to;
  }
}

TEST(unasked, goes_to_nobody_who_leaves_or_where_nobody_else_works) {
  membership all(me, {nodes_of_all, nodes_of_all, nodes_of_all}, {}, {});
  all.set(1, standing::left);
  all.set(6, standing::leaving);
  unasked tokens(all, nodes_of_all, seed_of_chance);
  EXPECT_EQ(set_of(sent_to(tokens, begin_ns, begin_ns + 1'000 * one_us)),
            (std::set<node_id>{0, 2, 4, 5, 7}));
  const membership alone(0, 1, {});
  unasked nowhere(alone, 1, seed_of_chance);
  EXPECT_TRUE(sent_to(nowhere, begin_ns, begin_ns + 100 * one_us).empty());
}

}  // namespace
}  // namespace strata::cluster
