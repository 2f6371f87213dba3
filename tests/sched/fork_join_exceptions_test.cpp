// SPDX-License-Identifier: Apache-2.0
// Exceptions of branches arrive at the join, after everything has ended; and those in flight belong
// to the stack, wherever it goes on.
#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/fork_join.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

struct custom {
  int number;
  std::string text;
};

class fork_join_exceptions : public ::testing::Test {
 protected:
  runtime rt{with_workers(2)};
};

TEST_F(fork_join_exceptions, keep_type_and_content) {
  rt.run([] {
    try {
      fork2join([]() -> int { throw custom{1, std::string(50, 'l')}; }, [] { return 2; });
      FAIL();
    } catch (const custom& c) {
      EXPECT_EQ(c.number, 1);
      EXPECT_EQ(c.text, std::string(50, 'l'));
    }
    try {
      fork2join([] { return 1; }, []() -> int { throw std::out_of_range("right"); });
      FAIL();
    } catch (const std::out_of_range& e) {
      EXPECT_STREQ(e.what(), "right");
    }
    EXPECT_THROW(fork2join([] { throw 5; }, [] {}), int);
  });
  EXPECT_EQ(rt.stats().live_frames, 0);
}

TEST_F(fork_join_exceptions, of_the_left_branch_drop_a_right_one_that_nobody_began) {
  runtime alone(with_workers(1));
  alone.run([] {
    bool right = false;
    EXPECT_THROW(fork2join([] { throw 1; }, [&] { right = true; }), int);
    EXPECT_FALSE(right);
    // The deque is in order afterwards.
    EXPECT_EQ(fork2join([] { return 1; }, [] { return 2; }), std::pair(1, 2));
  });
}

TEST_F(fork_join_exceptions, of_the_left_branch_wait_for_a_right_one_elsewhere) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  ASSERT_EQ(tracked::living(), 0);
  rt.run([&] {
    std::atomic<bool> right_ended{false};
    try {
      fork_suspended(
          rt,
          []() -> int {
            throw custom{1, "left"};
          },
          [&] {
            right_ended = true;
            return tracked(2);  // is not lost
          });
      FAIL();
    } catch (const custom& c) {
      EXPECT_EQ(c.text, "left");
      EXPECT_TRUE(right_ended);
    }
  });
  EXPECT_EQ(tracked::living(), 0);
}

TEST_F(fork_join_exceptions, of_a_stolen_branch_keep_type_and_content) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  rt.run([&] {
    for (const bool suspended : {false, true}) {
      const auto right = []() -> int { throw custom{2, std::string(60, 'r')}; };
      const auto left = [] { return tracked(1); };
      try {
        suspended ? fork_suspended(rt, left, right) : fork_stolen(left, right);
        FAIL();
      } catch (const custom& c) {
        EXPECT_EQ(c.number, 2);
        EXPECT_EQ(c.text, std::string(60, 'r'));
      }
      EXPECT_EQ(tracked::living(), 0);
    }
  });
}

TEST_F(fork_join_exceptions, of_the_left_branch_win) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  rt.run([&] {
    for (int round = 0; round < 20; ++round) {
      try {
        const auto left = [] { throw custom{1, "left"}; };
        const auto right = [] { throw custom{2, "right"}; };
        round % 2 == 0 ? fork_suspended(rt, left, right) : fork_stolen(left, right);
        FAIL();
      } catch (const custom& c) {
        EXPECT_EQ(c.text, "left");
      }
    }
  });
}

int sum_or_throw(int depth, int bad, int index) {
  if (depth == 0) {
    if (index == bad) throw std::runtime_error("leaf " + std::to_string(index));
    return 1;
  }
  auto [a, b] = fork2join([=] { return sum_or_throw(depth - 1, bad, 2 * index); },
                          [=] { return sum_or_throw(depth - 1, bad, 2 * index + 1); });
  return a + b;
}

TEST_F(fork_join_exceptions, cross_many_joins) {
  runtime many(with_workers(8));
  constexpr int depth = scaled(10, 6);
  constexpr int leaves = 1 << depth;
  for (int bad = -1; bad < leaves; bad += scaled(13, 17)) {
    try {
      EXPECT_EQ(many.run([=] { return sum_or_throw(depth, bad, 0); }), leaves);
      EXPECT_EQ(bad, -1);
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(e.what(), "leaf " + std::to_string(bad));
    }
  }
}

// A handler whose stack waits goes on on another thread, and its exception must be there.
TEST_F(fork_join_exceptions, being_handled_follow_their_stack) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  rt.run([&] {
    for (int round = 0; round < 50; ++round) {
      EXPECT_EQ(std::current_exception(), nullptr);
      bool rethrown = false;
      try {
        try {
          throw custom{round, "in flight"};
        } catch (const custom&) {
          const std::exception_ptr before = std::current_exception();
          const auto thread = std::this_thread::get_id();
          fork_suspended(
              rt, [] {},
              [&] {
                // Not on the stack of the handler.
                EXPECT_NE(std::this_thread::get_id(), thread);
                EXPECT_EQ(std::current_exception(), nullptr);
              });
          EXPECT_EQ(std::current_exception(), before);
          throw;
        }
      } catch (const custom& c) {
        EXPECT_EQ(c.number, round);
        rethrown = true;
      }
      EXPECT_TRUE(rethrown);
    }
  });
}

TEST_F(fork_join_exceptions, that_unwind_a_stack_follow_it) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  struct waits_when_destroyed {
    runtime& r;
    ~waits_when_destroyed() {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      fork_suspended(
          r, [] {}, [] { EXPECT_EQ(std::uncaught_exceptions(), 0); });
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  rt.run([&] {
    for (int round = 0; round < 50; ++round) {
      try {
        const waits_when_destroyed object{rt};
        throw custom{round, "unwinding"};
      } catch (const custom& c) {
        EXPECT_EQ(c.number, round);
      }
      EXPECT_EQ(std::uncaught_exceptions(), 0);
    }
  });
}

// Handlers within handlers on many stacks at once, all of which wait in between.
int nested_handlers(int depth, prng random) {
  if (depth == 0) return 1;
  const int number = static_cast<int>(random.below(1'000'000));
  try {
    throw custom{number, std::to_string(number)};
  } catch (const custom& c) {
    const std::uint64_t next = random();
    auto [a, b] = fork2join([=] { return nested_handlers(depth - 1, prng(next)); },
                            [=] { return nested_handlers(depth - 1, prng(next + 1)); });
    try {
      throw;
    } catch (const custom& again) {
      if (&again != &c || again.number != number || again.text != std::to_string(number)) return 0;
    }
    return a + b;
  }
}

TEST_F(fork_join_exceptions, in_nested_handlers_are_not_mixed_up) {
  const std::uint64_t s = seed();
  runtime many(with_workers(8));
  constexpr int depth = scaled(13, 9);
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(many.run([&] { return nested_handlers(depth, prng(s + round)); }), 1 << depth);
  }
}

TEST_F(fork_join_exceptions, being_handled_by_a_thread_that_enters_stay_there) {
  for (int round = 0; round < 20; ++round) {
    try {
      throw custom{round, "outside"};
    } catch (const custom&) {
      const std::exception_ptr before = std::current_exception();
      rt.run([&] {
        EXPECT_EQ(std::current_exception(), nullptr);
        if (stealing_is_certain())
          fork_suspended(
              rt, [] {}, [] {});
        EXPECT_EQ(std::current_exception(), nullptr);
      });
      EXPECT_EQ(std::current_exception(), before);
      EXPECT_THROW(throw, custom);
    }
    EXPECT_EQ(std::current_exception(), nullptr);
  }
}

}  // namespace
}  // namespace strata::test
