// SPDX-License-Identifier: Apache-2.0
// What tells of circles finds all of them, and nothing else, at a cost that grows with the number
// of those who wait and not with its square.
#include "threads/lock_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <vector>

namespace strata::test {
namespace {

using graph = detail::lock_graph<int>;

// Party i holds lock i, and waits for lock i + 1.
std::uint64_t steps_of_a_chain(const std::vector<int>& order) {
  const std::size_t n = order.size();
  const std::vector<char> lock(n + 1);
  graph g;
  for (std::size_t i = 0; i <= n; ++i) g.take(&lock[i], static_cast<int>(i));
  for (const int i : order) EXPECT_TRUE(g.await(i, &lock[static_cast<std::size_t>(i) + 1]).empty());
  const std::uint64_t steps = g.steps();
  EXPECT_EQ(g.await(static_cast<int>(n), lock.data()).size(), n + 1);
  return steps;
}

TEST(lock_graph, looks_along_no_chain_again_and_again) {
  constexpr std::size_t n = 10'000;
  constexpr std::uint64_t few = 100 * n;  // n * n / 2 where each of them follows the chain
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  EXPECT_LT(steps_of_a_chain(order), few);
  std::ranges::reverse(order);
  EXPECT_LT(steps_of_a_chain(order), few);
  std::ranges::shuffle(order, std::mt19937(1));
  EXPECT_LT(steps_of_a_chain(order), few);
}

TEST(lock_graph, looks_little_where_thousands_wait_for_one) {
  constexpr int n = 10'000;
  const char lock[2] = {};
  graph g;
  g.take(&lock[0], -1);
  for (int i = 0; i < n; ++i) EXPECT_TRUE(g.await(i, &lock[0]).empty());
  g.take(&lock[1], -2);
  for (int i = 0; i < n; ++i) {  // whom all wait for waits for another, again and again
    EXPECT_TRUE(g.await(-1, &lock[1]).empty());
    g.end_wait(-1);
  }
  EXPECT_LT(g.steps(), std::uint64_t{100} * n);
}

// Follows the only way there is.
struct plain_graph {
  std::map<const void*, int> holder;
  std::map<int, const void*> wanted;
  [[nodiscard]] std::size_t circle(int who, const void* lock) const {
    for (std::size_t length = 1;; ++length) {
      const auto h = holder.find(lock);
      if (h == holder.end()) return 0;
      if (h->second == who) return length;
      const auto w = wanted.find(h->second);
      if (w == wanted.end()) return 0;
      lock = w->second;
    }
  }
};

TEST(lock_graph, finds_what_following_finds) {
  constexpr unsigned parties = 40;
  const std::vector<char> lock(30);
  std::mt19937 random(5);
  const auto any = [&random](std::size_t below) { return random() % below; };
  std::size_t circles = 0;
  for (int round = 0; round < 300; ++round) {
    graph g;
    plain_graph expected;
    for (int i = 0; i < 400; ++i) {
      const int who = static_cast<int>(any(parties));
      const void* const at = &lock[any(lock.size())];
      const bool waits = expected.wanted.contains(who);
      const auto held = expected.holder.find(at);
      switch (any(4)) {
        case 0:
          if (waits || held != expected.holder.end()) break;
          g.take(at, who);
          expected.holder[at] = who;
          break;
        case 1:
          if (held == expected.holder.end() || expected.wanted.contains(held->second)) break;
          g.release(at);
          expected.holder.erase(held);
          break;
        case 2:
          g.end_wait(who);
          expected.wanted.erase(who);
          break;
        default: {
          if (waits) break;
          const auto found = g.await(who, at);
          ASSERT_EQ(found.size(), expected.circle(who, at));
          if (found.empty()) {
            expected.wanted[who] = at;
            break;
          }
          ++circles;
          for (const graph::link& l : found) {
            EXPECT_EQ(expected.holder.at(l.held), l.party);
            EXPECT_EQ(l.party == who ? at : expected.wanted.at(l.party), l.wanted);
          }
          g.end_wait(who);
        }
      }
    }
  }
  EXPECT_GT(circles, 100U);
}

}  // namespace
}  // namespace strata::test
