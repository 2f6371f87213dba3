// SPDX-License-Identifier: Apache-2.0
// fork2join returns what its branches return, whichever worker ran them.
#include "strata/fork_join.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <variant>

#include "../common/fib_forks.hpp"
#include "strata/task_scope.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

int queens(int n, unsigned columns, unsigned left, unsigned right) {
  const unsigned all = (1U << n) - 1;
  if (columns == all) return 1;
  // Cuts the free fields in two until one is left, so that a row is a tree of forks.
  const std::function<int(unsigned)> place = [&](unsigned free) -> int {
    if (free == 0) return 0;
    const unsigned bit = free & -free;
    if (free == bit) {
      return queens(n, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    auto [a, b] = fork2join([&] { return place(bit); }, [&] { return place(free & ~bit); });
    return a + b;
  };
  return place(all & ~(columns | left | right));
}

class fork_join_workers : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(workers, fork_join_workers, ::testing::Values(1, 2, 4, 8, 64),
                         ::testing::PrintToStringParamName());

TEST_P(fork_join_workers, fib) {
  runtime rt(with_workers(GetParam()));
  constexpr int n = scaled(27, 18);
  constexpr long expected = scaled(196418L, 2584L);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(rt.run([] { return fib(n); }), expected);
  EXPECT_EQ(rt.stats().live_frames, 0);
}

TEST_P(fork_join_workers, queens) {
  runtime rt(with_workers(GetParam()));
  // OEIS A000170
  constexpr std::array solutions{1, 1, 0, 0, 2, 10, 4, 40, 92, 352};
  for (std::size_t n = 1; n < solutions.size(); ++n) {
    EXPECT_EQ(rt.run([=] { return queens(static_cast<int>(n), 0, 0, 0); }), solutions[n]);
  }
}

class fork_join : public ::testing::Test {
 protected:
  runtime rt{with_workers(2)};
};

TEST_F(fork_join, results_come_in_order) {
  const auto both =
      rt.run([] { return fork2join([] { return 1; }, [] { return std::string("two"); }); });
  EXPECT_EQ(both, std::pair(1, std::string("two")));
}

TEST_F(fork_join, void_is_monostate_beside_a_value_and_nothing_beside_void) {
  rt.run([] {
    std::atomic<int> calls{0};  // of two branches at once
    static_assert(std::is_same_v<decltype(fork2join([] {}, [] { return 1; })),
                                 std::pair<std::monostate, int>>);
    static_assert(std::is_same_v<decltype(fork2join([] { return 1; }, [] {})),
                                 std::pair<int, std::monostate>>);
    static_assert(std::is_void_v<decltype(fork2join([] {}, [] {}))>);
    EXPECT_EQ(fork2join([&] { ++calls; }, [] { return 2; }).second, 2);
    EXPECT_EQ(fork2join([] { return 3; }, [&] { ++calls; }).first, 3);
    fork2join([&] { ++calls; }, [&] { ++calls; });
    EXPECT_EQ(calls, 4);
  });
}

TEST_F(fork_join, results_may_be_move_only) {
  rt.run([] {
    auto [a, b] =
        fork2join([] { return std::make_unique<int>(1); }, [] { return std::make_unique<int>(2); });
    EXPECT_EQ(*a + *b, 3);
  });
}

TEST_F(fork_join, stolen_results_may_be_move_only) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  rt.run([] {
    auto [a, b] = fork_stolen([] { return std::make_unique<int>(1); },
                              [] { return std::make_unique<int>(2); });
    EXPECT_EQ(*a + *b, 3);
  });
}

struct text_of {
  static const std::string number(int n) { return std::string(100, static_cast<char>('a' + n)); }
};

TEST_F(fork_join, stolen_results_may_be_const) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  rt.run([] {
    const auto [a, b] =
        fork_stolen([] { return text_of::number(1); }, [] { return text_of::number(2); });
    EXPECT_EQ(a + b, text_of::number(1) + text_of::number(2));
  });
}

TEST_F(fork_join, results_may_be_const) {
  EXPECT_EQ(rt.run([] { return text_of::number(0); }), text_of::number(0));
  rt.run([] {
    const auto [a, b] =
        fork2join([] { return text_of::number(1); }, [] { return text_of::number(2); });
    EXPECT_EQ(a + b, text_of::number(1) + text_of::number(2));
    task_scope scope;
    auto c = scope.spawn([] { return text_of::number(3); });
    scope.sync();
    EXPECT_EQ(c.get(), text_of::number(3));
  });
}

TEST_F(fork_join, results_need_no_default_constructor_and_none_is_lost) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  ASSERT_EQ(tracked::living(), 0);
  rt.run([&] {
    struct result : tracked {
      explicit result(int v) : tracked(v) {}
      result() = delete;
    };
    auto direct = fork2join([] { return result(1); }, [] { return result(2); });
    auto stolen = fork_stolen([] { return result(3); }, [] { return result(4); });
    auto joined = fork_suspended(
        rt, [] { return result(5); }, [] { return result(6); });
    EXPECT_EQ(direct.first.value(), 1);
    EXPECT_EQ(direct.second.value(), 2);
    EXPECT_EQ(stolen.first.value(), 3);
    EXPECT_EQ(stolen.second.value(), 4);
    EXPECT_EQ(joined.first.value(), 5);
    EXPECT_EQ(joined.second.value(), 6);
    EXPECT_EQ(tracked::living(), 6);
  });
  EXPECT_EQ(tracked::living(), 0);
}

TEST_F(fork_join, branches_see_the_callers_variables_and_it_sees_theirs) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  rt.run([] {
    std::array<int, 100> before{};
    before.fill(7);
    std::array<int, 100> left{};
    std::array<int, 100> right{};
    for (int round = 0; round < 20; ++round) {
      fork_stolen([&] { left = before; }, [&] { right = before; });
      EXPECT_EQ(left, before);
      EXPECT_EQ(right, before);
      for (int& value : before) ++value;
    }
  });
}

TEST_F(fork_join, what_branches_do_to_their_functions_is_there_afterwards) {
  struct part {
    long n, sum = 0;
    void operator()() {
      for (long i = 1; i <= n; ++i) sum += i;
    }
  };
  rt.run([] {
    part left{10}, right{20};
    fork2join(left, right);
    EXPECT_EQ(left.sum, 55);
    EXPECT_EQ(right.sum, 210);
    fork2join_inline(left, right);
    EXPECT_EQ(left.sum, 110);
    EXPECT_EQ(right.sum, 420);
    fork2join([&, calls = 0]() mutable { EXPECT_EQ(++calls, 1); }, right);
    EXPECT_EQ(right.sum, 630);
  });
}

TEST_F(fork_join, small_functions_need_no_copy) {
  struct handle {
    explicit handle(int n) : number(n) {}
    handle(const handle&) = delete;
    handle(handle&&) = default;
    int number;
  };
  rt.run([] {
    const auto both =
        fork2join([h = handle(3)] { return h.number; }, [h = handle(4)] { return h.number; });
    EXPECT_EQ(both, std::pair(3, 4));
  });
}

// Whether it could be called as a constant is not asked: that does not compile.
template <class F>
struct called_either_way {
  F function;
  auto operator()() { return function(); }
  auto operator()() const { return function(); }
};

TEST_F(fork_join, functions_that_are_kept_by_reference_are_called_as_they_are) {
  rt.run([] {
    auto count = [text = std::string("3"), n = 0]() mutable {
      n += std::stoi(text);
      return n;
    };
    called_either_way<decltype(count)> counts{count};
    EXPECT_EQ(fork2join(counts, [] { return 4; }), std::pair(3, 4));
    EXPECT_EQ(fork2join([] { return 4; }, counts), std::pair(4, 6));
  });
}

TEST_F(fork_join, results_and_functions_may_have_an_address_operator_of_their_own) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  struct odd {
    int number;
    const int* operator&() const { return nullptr; }
    void operator&() = delete;
  };
  struct counts {
    int calls = 0;
    odd operator()() { return {++calls}; }
    void operator&() = delete;
  };
  rt.run([&] {
    counts left, right;
    const auto direct = fork2join(left, right);
    EXPECT_EQ(direct.first.number + direct.second.number, 2);
    const auto joined = fork_suspended(
        rt, [] { return odd{3}; }, [] { return odd{4}; });
    EXPECT_EQ(joined.first.number, 3);
    EXPECT_EQ(joined.second.number, 4);
  });
}

int one() { return 1; }
struct two {
  int operator()() const { return 2; }
};
struct three {
  std::unique_ptr<int> value = std::make_unique<int>(3);
  int operator()() && = delete;  // a branch is an lvalue
  int operator()() & { return *value; }
};

TEST_F(fork_join, takes_any_callable) {
  rt.run([] {
    int (*pointer)() = &one;
    const two constant;
    EXPECT_EQ(fork2join(one, pointer), std::pair(1, 1));
    EXPECT_EQ(fork2join(constant, three{}), std::pair(2, 3));
    std::function<int()> big = [text = std::string(100, 'x')] {
      return static_cast<int>(text.size());
    };
    EXPECT_EQ(fork2join(big, [a = std::array<int, 40>{}] { return static_cast<int>(a.size()); }),
              std::pair(100, 40));
    int counter = 0;
    auto counts = [&counter]() mutable { return ++counter; };
    fork2join([] {}, counts);
    fork2join(counts, [] {});
    EXPECT_EQ(counter, 2);
  });
}

TEST_F(fork_join, a_left_branch_returns_before_the_right_one_begins_if_nobody_steals) {
  runtime alone(with_workers(1));
  alone.run([] {
    std::string order;
    fork2join([&] { fork2join([&] { order += 'a'; }, [&] { order += 'b'; }); },
              [&] { fork2join([&] { order += 'c'; }, [&] { order += 'd'; }); });
    EXPECT_EQ(order, "abcd");
  });
  EXPECT_EQ(alone.stats().total().suspensions, 0u);
  EXPECT_EQ(alone.stats().total().dispatched, 1u);  // the root alone took a stack
}

TEST_F(fork_join, outside_a_runtime_is_misuse) {
  try {
    fork2join([] {}, [] {});
    FAIL() << "not refused";
  } catch (const misuse_error& e) {
    EXPECT_NE(std::string(e.what()).find("runtime::run()"), std::string::npos) << e.what();
  }
  int calls = 0;
  EXPECT_THROW(fork2join([&] { return ++calls; }, [&] { ++calls; }), misuse_error);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace strata::test
