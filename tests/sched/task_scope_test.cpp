// SPDX-License-Identifier: Apache-2.0
// A scope ends when all its children have ended, wherever they ran and whatever they threw.
#include "strata/task_scope.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "strata/call.hpp"
#include "strata/detail/use_check.hpp"
#include "strata/fiber.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

class task_scope_workers : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(workers, task_scope_workers, ::testing::Values(1, 2, 4, 8, 64),
                         ::testing::PrintToStringParamName());

TEST_P(task_scope_workers, runs_every_child_once) {
  constexpr int children = scaled(100'000, 10'000);  // more than the deque holds
  runtime rt(with_workers(GetParam()));
  std::vector<std::atomic<int>> runs(children);
  rt.run([&] {
    task_scope scope;
    for (auto& r : runs) scope.spawn([&r] { r.fetch_add(1, std::memory_order_relaxed); });
    scope.sync();
    for (const auto& r : runs) ASSERT_EQ(r.load(std::memory_order_relaxed), 1);
  });
  EXPECT_EQ(rt.stats().total().spawns, static_cast<std::uint64_t>(children));
  EXPECT_EQ(rt.stats().live_frames, 0);
}

long tree(int depth) {
  if (depth == 0) return 1;
  std::array<long, 3> part{};
  task_scope scope;
  for (long& p : part) scope.spawn([&p, depth] { p = tree(depth - 1); });
  scope.sync();
  return part[0] + part[1] + part[2];
}

TEST_P(task_scope_workers, nest) {
  runtime rt(with_workers(GetParam()));
  constexpr int depth = scaled(10, 7);
  constexpr long leaves = scaled(59'049L, 2'187L);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(rt.run([] { return tree(depth); }), leaves);
  EXPECT_EQ(rt.stats().live_frames, 0);
}

// ---- children that are calls (strata/call.hpp), on one node

long tree_of_calls(int depth) {
  if (depth == 0) return 1;
  task_scope scope;
  std::vector<spawned<long>> parts;
  for (int i = 0; i < 3; ++i) parts.push_back(scope.spawn(call<tree_of_calls>(depth - 1)));
  scope.sync();
  long sum = 0;
  for (auto& p : parts) sum += p.get();
  return sum;
}

TEST_P(task_scope_workers, nest_as_calls) {
  runtime rt(with_workers(GetParam()));
  constexpr int depth = scaled(9, 6);
  constexpr long leaves = scaled(19'683L, 729L);
  for (int round = 0; round < 3; ++round)
    EXPECT_EQ(rt.run([] { return tree_of_calls(depth); }), leaves);
  EXPECT_EQ(rt.stats().live_frames, 0);
}

struct whole_number {
  int value;
};
const whole_number constant_of(int n) { return {n}; }

TEST_P(task_scope_workers, calls_may_return_const) {
  runtime rt(with_workers(GetParam()));
  rt.run([] {
    task_scope scope;
    auto three = scope.spawn(call<constant_of>(3));
    scope.sync();
    EXPECT_EQ(three.get().value, 3);
    const auto [one, two] = fork2join(call<constant_of>(1), call<constant_of>(2));
    EXPECT_EQ(one.value + two.value, 3);
  });
}

int doubled_unless_odd(int n) {
  if (n % 2 != 0) throw std::out_of_range(std::to_string(n));
  return 2 * n;
}
std::atomic<int> calls_made{0};
void count_one(int) { calls_made.fetch_add(1, std::memory_order_relaxed); }

// More than the deque holds, between children that are none.
TEST_P(task_scope_workers, run_every_call_once) {
  constexpr int children = scaled(20'000, 5'000);
  runtime rt(with_workers(GetParam()));
  calls_made = 0;
  rt.run([&] {
    task_scope scope;
    std::vector<spawned<int>> doubled;
    for (int i = 0; i < children; ++i) {
      scope.spawn(call<count_one>(i));
      scope.spawn([] { count_one(0); });
      if (i % 100 == 0) doubled.push_back(scope.spawn(call<doubled_unless_odd>(i)));
    }
    EXPECT_THROW(doubled.front().get(), misuse_error) << "before sync()";
    scope.sync();
    EXPECT_EQ(calls_made, 2 * children);
    for (std::size_t i = 0; i < doubled.size(); ++i)
      ASSERT_EQ(doubled[i].get(), 200 * static_cast<int>(i));
    EXPECT_THROW(doubled.front().get(), misuse_error) << "twice";
  });
  EXPECT_EQ(rt.stats().live_frames, 0);
}

TEST_P(task_scope_workers, rethrow_what_a_call_throws_when_all_have_ended) {
  runtime rt(with_workers(GetParam()));
  for (int round = 0; round < 20; ++round) {
    rt.run([&] {
      calls_made = 0;
      task_scope scope;
      auto even = scope.spawn(call<doubled_unless_odd>(round * 2));
      auto odd = scope.spawn(call<doubled_unless_odd>(7));
      for (int i = 0; i < 10; ++i) scope.spawn(call<count_one>(i));
      EXPECT_THROW(scope.sync(), std::out_of_range);
      EXPECT_EQ(calls_made, 10);
      EXPECT_EQ(even.get(), round * 4);
      EXPECT_THROW(odd.get(), misuse_error);
      scope.spawn(call<count_one>(0));  // the scope is as good as new
      scope.sync();
      EXPECT_EQ(calls_made, 11);
    });
  }
  EXPECT_EQ(rt.stats().live_frames, 0);
}

TEST_P(task_scope_workers, skip_calls_once_a_stop_is_requested) {
  runtime rt(with_workers(GetParam()));
  rt.run([&] {
    calls_made = 0;
    std::stop_source stop;
    stop.request_stop();
    task_scope scope(stop.get_token());
    auto never = scope.spawn(call<doubled_unless_odd>(2));
    for (int i = 0; i < 100; ++i) scope.spawn(call<count_one>(i));
    scope.sync();
    EXPECT_EQ(calls_made, 0);
    EXPECT_THROW(never.get(), misuse_error);
  });
  EXPECT_EQ(rt.stats().live_frames, 0);
}

class task_scopes : public ::testing::Test {
 protected:
  runtime rt{with_workers(2)};
};

TEST_F(task_scopes, hand_out_results) {
  // With one worker no child begins before sync().
  runtime alone(with_workers(1));
  alone.run([] {
    task_scope scope;
    auto number = scope.spawn([] { return 7; });
    auto owner = scope.spawn([] { return std::make_unique<std::string>("seven"); });
    EXPECT_THROW(owner.get(), misuse_error);  // too early
    scope.sync();
    EXPECT_EQ(number.get(), 7);
    EXPECT_EQ(*owner.get(), "seven");
    EXPECT_THROW(number.get(), misuse_error);  // twice
  });
}

// Also when another worker has it ready: that it is ready is known at sync().
TEST_F(task_scopes, hand_out_no_result_before_sync) {
  rt.run([] {
    std::atomic<bool> over = false;
    task_scope scope;
    auto first = scope.spawn([&over] {
      over = true;
      return 7;
    });
    while (!over) std::this_thread::yield();  // stolen by the other worker
    for (int i = 0; i < 1'000; ++i) ASSERT_THROW(first.get(), misuse_error);
    scope.sync();
    auto second = scope.spawn([] { return 8; });
    EXPECT_EQ(first.get(), 7);
    EXPECT_THROW(second.get(), misuse_error);
    scope.sync();
    EXPECT_EQ(second.get(), 8);
  });
}

TEST_F(task_scopes, lose_no_result) {
  ASSERT_EQ(tracked::living(), 0);
  rt.run([] {
    task_scope scope;
    auto taken = scope.spawn([] { return tracked(1); });
    scope.spawn([] { return tracked(2); });  // nobody asks for it
    scope.sync();
    EXPECT_EQ(taken.get().value(), 1);
    EXPECT_EQ(tracked::living(), 0);
    auto kept = scope.spawn([] { return tracked(3); });
    scope.sync();
    EXPECT_EQ(tracked::living(), 1) << "somebody may ask for it";
  });
  EXPECT_EQ(tracked::living(), 0);
  EXPECT_EQ(rt.stats().live_frames, 0);
}

TEST_F(task_scopes, keep_captures_as_long_as_the_child) {
  // With one worker no child begins before sync().
  runtime alone(with_workers(1));
  alone.run([] {
    task_scope scope;
    auto token = std::make_shared<int>(1);
    for (int i = 0; i < 10; ++i) scope.spawn([token] { EXPECT_EQ(*token, 1); });
    EXPECT_EQ(token.use_count(), 11);
    scope.sync();
    EXPECT_EQ(token.use_count(), 1);
    // Larger than a block of the pool.
    std::array<char, 4000> large{};
    large.back() = 'x';
    scope.spawn([large, token] { EXPECT_EQ(large.back(), 'x'); });
    scope.sync();
    EXPECT_EQ(token.use_count(), 1);
  });
  EXPECT_EQ(alone.stats().live_frames, 0);
}

TEST_F(task_scopes, rethrow_at_sync_when_all_have_ended) {
  rt.run([] {
    task_scope scope;
    std::atomic<int> ended{0};
    for (int i = 0; i < 100; ++i) {
      scope.spawn([&ended, i] {
        ++ended;
        if (i % 10 == 3) throw std::runtime_error("child " + std::to_string(i));
      });
    }
    try {
      scope.sync();
      FAIL();
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(ended, 100);
      EXPECT_EQ(std::string(e.what()).back(), '3');
    }
    // Rethrown once, and the scope is as good as new.
    scope.sync();
    bool ran = false;
    scope.spawn([&] { ran = true; });
    scope.sync();
    EXPECT_TRUE(ran);
  });
}

TEST_F(task_scopes, rethrow_what_a_stolen_child_threw) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  rt.run([] {
    std::atomic<bool> begun{false};
    task_scope scope;
    const auto number = scope.spawn([&]() -> int {
      begun = true;
      throw std::out_of_range("elsewhere");
    });
    static_cast<void>(number);
    spin_until(begun);
    try {
      scope.sync();
      FAIL();
    } catch (const std::out_of_range& e) {
      EXPECT_STREQ(e.what(), "elsewhere");
    }
  });
}

TEST_F(task_scopes, wait_when_left_by_an_exception) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  rt.run([] {
    std::atomic<int> ended{0};
    try {
      std::atomic<bool> begun{false};
      task_scope scope;
      scope.spawn([&] {
        begun = true;
        spin_until([&] { return ended == 1; });  // the sibling, which runs while we leave
        ++ended;
        throw std::runtime_error("lost, because another exception is on its way");
      });
      spin_until(begun);
      scope.spawn([&] { ++ended; });
      throw std::logic_error("leaves");
    } catch (const std::logic_error& e) {
      EXPECT_STREQ(e.what(), "leaves");
      EXPECT_EQ(ended, 2);
    }
  });
}

TEST_F(task_scopes, skip_what_has_not_begun_when_stopped) {
  runtime alone(with_workers(1));
  alone.run([] {
    std::stop_source source;
    task_scope scope(source.get_token());
    int before = 0;
    int after = 0;
    scope.spawn([&] { ++before; });
    scope.sync();
    for (int i = 0; i < 10; ++i) scope.spawn([&] { ++after; });
    auto cancelled = scope.spawn([] { return 1; });
    // Children run newest first.
    scope.spawn([&] { source.request_stop(); });
    scope.sync();
    EXPECT_EQ(before, 1);
    EXPECT_EQ(after, 0);
    EXPECT_THROW(cancelled.get(), misuse_error);
    scope.spawn([&] { ++after; });
    scope.sync();
    EXPECT_EQ(after, 0);
  });
  EXPECT_EQ(alone.stats().live_frames, 0);
}

struct counted : threaded {
  std::atomic<int>* count;
  void start() {
    ++*count;
    terminate();
  }
};

TEST_F(task_scopes, are_not_confused_by_tokens_sent_meanwhile) {
  for (const unsigned workers : {1U, 2U, 8U}) {
    runtime some(with_workers(workers));
    std::atomic<int> children{0};
    std::atomic<int> tokens{0};
    constexpr int rounds = scaled(500, 50);
    some.run([&] {
      for (int round = 0; round < rounds; ++round) {
        task_scope scope;
        for (int i = 0; i < 5; ++i) {
          scope.spawn([&] {
            token<counted>(&tokens);
            ++children;
            token<counted>(&tokens);
          });
          token<counted>(&tokens);
        }
        scope.sync();
        ASSERT_EQ(children, 5 * (round + 1));
      }
    });
    some.wait_idle();
    EXPECT_EQ(tokens, 15 * rounds);
    EXPECT_EQ(some.stats().live_frames, 0);
  }
}

TEST_F(task_scopes, within_forks_and_forks_within_them) {
  for (const unsigned workers : {1U, 4U}) {
    runtime some(with_workers(workers));
    std::atomic<long> sum{0};
    constexpr int rounds = scaled(200, 30);
    some.run([&] {
      for (int round = 0; round < rounds; ++round) {
        fork2join(
            [&] {
              task_scope outer;
              for (int i = 0; i < 4; ++i) {
                outer.spawn([&] {
                  task_scope inner;
                  inner.spawn([&] { fork2join([&] { ++sum; }, [&] { ++sum; }); });
                  fork2join([&] { ++sum; }, [&] { ++sum; });
                  inner.sync();
                });
              }
              outer.sync();
            },
            [&] { sum += 100; });
      }
    });
    EXPECT_EQ(sum, rounds * 116);
  }
}

TEST_F(task_scopes, of_a_task_that_has_moved_find_their_children) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  rt.run([&] {
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> ended{0};
      task_scope scope;
      scope.spawn([&] { ++ended; });
      // Moves to the other worker; the first child stays behind, or is stolen with the branch.
      fork_suspended(
          rt, [] {}, [] {});
      scope.spawn([&] { ++ended; });
      scope.sync();
      ASSERT_EQ(ended, 2);
    }
  });
}

long nested_scopes(long depth) {
  if (depth == 0) return 0;
  long below = 0;
  task_scope scope;
  scope.spawn([&below, depth] { below = nested_scopes(depth - 1); });
  scope.sync();
  return below + 1;
}

TEST_F(task_scopes, nest_deeply_on_small_stacks) {
  constexpr long depth = scaled(100'000L, 3'000L);
  options o = with_workers(2);
  o.stack_bytes = scaled(16, 64) * 1024;
  for (const unsigned workers : {1U, 2U}) {
    o.workers = workers;
    runtime small(o);
    EXPECT_EQ(small.run([] { return nested_scopes(depth); }), depth);
    EXPECT_GT(small.stats().stacks_max, 10u);
  }
}

TEST_F(task_scopes, survive_a_child_that_cannot_be_copied) {
  struct refuses {
    refuses() = default;
    refuses(const refuses&) { throw std::runtime_error("no copy"); }
    void operator()() const {}
  };
  rt.run([] {
    task_scope scope;
    const refuses original;
    EXPECT_THROW(scope.spawn(original), std::runtime_error);
    scope.sync();
  });
  EXPECT_EQ(rt.stats().live_frames, 0);
}

TEST_F(task_scopes, are_the_makers_alone) {
  if (!detail::uses_are_checked) GTEST_SKIP() << "this build does not check";
  const auto use = [](task_scope& another) {
    EXPECT_THROW(another.spawn([] {}), misuse_error);
    EXPECT_THROW((void)another.spawn([] { return 1; }), misuse_error);
    EXPECT_THROW(another.spawn(call<count_one>(1)), misuse_error);
    EXPECT_THROW(another.sync(), misuse_error);
  };
  runtime alone(with_workers(1));
  alone.run([&] {
    task_scope scope;
    scope.spawn([&] { use(scope); });  // runs on the same stack
    scope.sync();
    int ran = 0;
    scope.spawn([&] { ++ran; });
    scope.sync();
    EXPECT_EQ(ran, 1);
  });
  if (!stealing_is_certain()) return;
  rt.run([&] {
    task_scope scope;
    std::atomic<bool> over{false};
    scope.spawn([&] {
      use(scope);
      over = true;
    });
    spin_until(over);
    scope.sync();
    fork_stolen([] {}, [&] { use(scope); });
  });
}

// Also those that found no room in the deque.
TEST(task_scope, runs_its_children_on_its_makers_stack) {
  runtime alone(with_workers(1));
  alone.run([&] {
    unsigned ran = 0;
    task_scope scope;
    for (unsigned i = 0; i < 20'000; ++i) scope.spawn([&ran] { ++ran; });
    const std::uint64_t before = alone.stats().total().dispatched;
    scope.sync();
    EXPECT_EQ(ran, 20'000u);
    EXPECT_EQ(alone.stats().total().dispatched, before);
  });
}

TEST(task_scope, outside_a_runtime_is_misuse) {
  task_scope scope;
  EXPECT_THROW(scope.spawn([] {}), misuse_error);
  EXPECT_THROW(scope.spawn([] { return 1; }), misuse_error);
  scope.sync();
}

TEST(task_scope_death, an_exception_that_nobody_collects_ends_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        runtime alone(with_workers(1));
        alone.run([] {
          task_scope scope;
          scope.spawn([] { throw std::runtime_error("no such city"); });
        });
      },
      "task_scope ended with an exception.*no such city");
}

}  // namespace
}  // namespace strata::test
