// SPDX-License-Identifier: Apache-2.0
// Nesting is bounded by memory only: neither the stack's size nor the deque's capacity limits it.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "strata/fork_join.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

// Every level leaves its right branch waiting in the deque.
long left_deep(long depth) {
  if (depth == 0) return 0;
  auto [a, b] = fork2join([=] { return left_deep(depth - 1); }, [] { return 1L; });
  return a + b;
}
// Every level is a right branch, as a direct call.
long right_deep(long depth) {
  if (depth == 0) return 0;
  auto [a, b] = fork2join([] { return 1L; }, [=] { return right_deep(depth - 1); });
  return a + b;
}
long throws_at(long depth) {
  if (depth == 0) throw std::runtime_error("from the bottom");
  auto [a, b] = fork2join([=] { return throws_at(depth - 1); }, [] { return 1L; });
  return a + b;
}

constexpr std::size_t smallest_stack_bytes = scaled(16, 64) * 1024;

options small_stacks(unsigned workers) {
  options o = with_workers(workers);
  o.stack_bytes = smallest_stack_bytes;
  return o;
}

TEST(fork_join_depth, a_million_pending_forks) {
  constexpr long depth = scaled(1'000'000L, 100'000L);
  static_assert(depth > 65'536, "more than the deque holds");
  runtime alone(with_workers(1));
  EXPECT_EQ(alone.run([] { return left_deep(depth); }), depth);
  EXPECT_GT(alone.stats().stacks_max, 1u);
  runtime two(with_workers(2));
  EXPECT_EQ(two.run([] { return left_deep(depth); }), depth);
}

TEST(fork_join_depth, a_million_calls) {
  constexpr long depth = scaled(1'000'000L, 100'000L);
  runtime rt(with_workers(2));
  EXPECT_EQ(rt.run([] { return right_deep(depth); }), depth);
}

TEST(fork_join_depth, small_stacks_are_chained) {
  constexpr long depth = scaled(100'000L, 10'000L);
  for (const unsigned workers : {1U, 3U}) {
    runtime rt(small_stacks(workers));
    EXPECT_EQ(rt.run([] { return left_deep(depth); }), depth);
    EXPECT_EQ(rt.run([] { return right_deep(depth); }), depth);
    EXPECT_GT(rt.stats().stacks_max, 10u);
  }
}

TEST(fork_join_depth, exceptions_rise_through_chained_stacks) {
  constexpr long depth = scaled(20'000L, 2'000L);
  for (const unsigned workers : {1U, 3U}) {
    runtime rt(small_stacks(workers));
    for (int round = 0; round < 3; ++round) {
      try {
        rt.run([] { return throws_at(depth); });
        FAIL();
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "from the bottom");
      }
    }
    EXPECT_EQ(rt.run([] { return left_deep(100); }), 100);
  }
}

TEST(fork_join_depth, chained_stacks_are_used_again) {
  constexpr long depth = scaled(20'000L, 2'000L);
  // One worker: nothing is stolen, so every round needs the same stacks. (A stolen branch begins
  // one of its own, and how many are stolen differs from round to round.)
  runtime rt(small_stacks(1));
  EXPECT_EQ(rt.run([] { return right_deep(depth); }), depth);
  const std::size_t first = rt.stats().stacks_max;
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(rt.run([] { return right_deep(depth); }), depth);
  }
  EXPECT_EQ(rt.stats().stacks_max, first);
}

TEST(fork_join_depth, move_only_results_and_void_cross_stacks) {
  runtime rt(small_stacks(1));
  struct nest {
    static std::unique_ptr<long> value(long depth) {
      if (depth == 0) return std::make_unique<long>(0);
      auto [a, b] =
          fork2join([=] { return value(depth - 1); }, [] { return std::make_unique<long>(1); });
      return std::make_unique<long>(*a + *b);
    }
    static void nothing(long depth, long& count) {
      if (depth == 0) return;
      fork2join([&, depth] { nothing(depth - 1, count); }, [&] { ++count; });
    }
  };
  EXPECT_EQ(*rt.run([] { return nest::value(2'000); }), 2'000);
  EXPECT_EQ(rt.run([] {
    long count = 0;
    nest::nothing(2'000, count);
    return count;
  }),
            2'000);
}

}  // namespace
}  // namespace strata::test
