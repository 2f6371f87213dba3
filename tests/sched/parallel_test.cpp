// SPDX-License-Identifier: Apache-2.0
// Loops visit every index once, reductions keep the order of their operands.
#include "strata/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <type_traits>
#include <vector>

#include "support.hpp"

namespace strata::test {
namespace {

template <class Index>
void expect_each_once(runtime& rt, Index first, Index last, grain g = {}) {
  const auto n = static_cast<std::size_t>(static_cast<std::uint64_t>(last) -
                                          static_cast<std::uint64_t>(first));
  std::vector<std::atomic<int>> visits(n);
  std::atomic<int> strays{0};
  rt.run([&] {
    parallel_for(
        first, last,
        [&](Index i) {
          const auto at = static_cast<std::size_t>(static_cast<std::uint64_t>(i) -
                                                   static_cast<std::uint64_t>(first));
          if (at < n) {
            visits[at].fetch_add(1, std::memory_order_relaxed);
          } else {
            ++strays;
          }
        },
        g);
    for (const auto& v : visits) ASSERT_EQ(v.load(std::memory_order_relaxed), 1);
  });
  EXPECT_EQ(strays, 0);
}

class parallel_workers : public ::testing::TestWithParam<unsigned> {
 protected:
  runtime rt{with_workers(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(workers, parallel_workers, ::testing::Values(1, 2, 4, 8, 64),
                         ::testing::PrintToStringParamName());

TEST_P(parallel_workers, for_visits_every_index_once) {
  for (const int n : {0, 1, 2, 3, 63, 64, 65, 1000, scaled(300'000, 20'000)}) {
    expect_each_once(rt, 0, n);
  }
}

TEST_P(parallel_workers, for_visits_every_index_once_with_any_grain) {
  const std::uint64_t s = seed();
  prng random(s);
  for (int round = 0; round < 30; ++round) {
    const auto n = static_cast<int>(random.below(3000));
    const auto first = static_cast<int>(random.below(1000)) - 500;
    const std::size_t steps[] = {1, 1 + random.below(100), 100'000, SIZE_MAX};
    expect_each_once(rt, first, first + n, {steps[random.below(4)]});
  }
}

TEST_P(parallel_workers, bodies_of_two_indices_get_parts_that_are_the_range) {
  rt.run([] {
    for (const std::size_t n : {0U, 1U, 7U, 64U, 5'000U}) {
      for (const std::size_t step : {0U, 1U, 10U, 10'000U}) {
        std::vector<std::atomic<int>> visits(n);
        std::atomic<std::size_t> longest{0};
        std::atomic<bool> was_empty{false};
        const auto visit = [&](std::size_t begin, std::size_t end) {
          if (begin >= end) was_empty = true;
          std::size_t before = longest.load();
          while (before < end - begin && !longest.compare_exchange_weak(before, end - begin)) {
          }
          for (std::size_t i = begin; i < end; ++i) visits[i].fetch_add(1);
        };
        parallel_for(std::size_t{0}, n, visit, grain{step});
        for (const auto& v : visits) ASSERT_EQ(v.load(), 1);
        EXPECT_FALSE(was_empty);
        if (step != 0) {
          EXPECT_LE(longest, step);
        }
        const auto text = [](std::size_t begin, std::size_t end) {
          std::string all;
          for (; begin < end; ++begin) all += static_cast<char>('a' + begin % 26);
          return all;
        };
        EXPECT_EQ(parallel_reduce(std::size_t{0}, n, std::string(), text, std::plus<std::string>(),
                                  grain{step}),
                  text(0, n));
      }
    }
  });
}

TEST_P(parallel_workers, reduce_keeps_the_order) {
  constexpr int n = scaled(3000, 600);
  std::string expected;
  for (int i = 0; i < n; ++i) expected += std::to_string(i) + ',';
  const auto concatenate = [](std::string a, const std::string& b) { return std::move(a) + b; };
  for (const std::size_t step : {0, 1, 7, 100'000}) {
    EXPECT_EQ(rt.run([&] {
      return parallel_reduce(
          0, n, std::string(), [](int i) { return std::to_string(i) + ','; }, concatenate,
          grain{step});
    }),
              expected);
  }
}

TEST_P(parallel_workers, loops_nest) {
  std::atomic<long> sum{0};
  rt.run([&] {
    parallel_for(0, 50, [&](int i) {
      parallel_for(0, 50, [&, i](int j) { sum.fetch_add(i * j, std::memory_order_relaxed); });
    });
  });
  EXPECT_EQ(sum, 1225L * 1225L);
}

long loops_deep(long depth) {
  if (depth == 0) return 0;
  long below = 0;
  parallel_for(0, 1, [&](int) { below = loops_deep(depth - 1); });
  return below + 1;
}
long reductions_deep(long depth) {
  if (depth == 0) return 0;
  return parallel_reduce(
      0, 1, 1L, [depth](int) { return reductions_deep(depth - 1); }, std::plus<>());
}
long throwing_loops_deep(long depth) {
  if (depth == 0) throw std::runtime_error("from the bottom");
  const std::stop_source nobody;
  const auto one = [depth](int) { return throwing_loops_deep(depth - 1); };
  if (depth % 2 == 0) return parallel_reduce(nobody.get_token(), 0, 1, 0L, one, std::plus<>());
  parallel_for(nobody.get_token(), 0, 1, one);
  return 0;
}

TEST(parallel_depth, loops_nest_deeply_on_small_stacks) {
  constexpr long depth = scaled(100'000L, 3'000L);
  for (const bool profile : {false, true}) {
    options small = with_workers(2);
    small.stack_bytes = scaled(16, 64) * 1024;
    small.profile = profile;
    runtime rt(small);
    EXPECT_EQ(rt.run([] { return loops_deep(depth); }), depth);
    EXPECT_EQ(rt.run([] { return reductions_deep(depth); }), depth);
    EXPECT_GT(rt.stats().stacks_max, 10u);
    try {
      rt.run([] { return throwing_loops_deep(depth / 10); });
      FAIL();
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "from the bottom");
    }
  }
}

class parallel : public ::testing::Test {
 protected:
  runtime rt{with_workers(4)};
};

template <class Index>
class parallel_index : public parallel {};
using index_types = ::testing::Types<signed char, unsigned char, char, short, unsigned short, int,
                                     unsigned, long, unsigned long, long long, unsigned long long>;
// With sanitizers a narrow and a wide one of each kind: compiling a type takes a second.
using some_index_types = ::testing::Types<signed char, unsigned short, int, unsigned long>;
using sampled_index_types =
    std::conditional_t<thread_sanitizer || address_sanitizer, some_index_types, index_types>;
TYPED_TEST_SUITE(parallel_index, sampled_index_types);

TYPED_TEST(parallel_index, ranges_may_touch_the_ends_of_their_type) {
  using limits = std::numeric_limits<TypeParam>;
  const auto at = [](auto value) { return static_cast<TypeParam>(value); };
  expect_each_once(this->rt, at(limits::max() - 100), limits::max());
  expect_each_once(this->rt, limits::min(), at(limits::min() + 100));
  expect_each_once(this->rt, limits::max(), limits::max());
  expect_each_once(this->rt, limits::min(), limits::min());
  if constexpr (sizeof(TypeParam) <= 2) {
    for (const std::size_t step : {0, 1, 100, 200, 40'000, 100'000}) {
      expect_each_once(this->rt, limits::min(), limits::max(), {step});
    }
  }
}

TYPED_TEST(parallel_index, an_empty_range_calls_nothing) {
  using limits = std::numeric_limits<TypeParam>;
  this->rt.run([] {
    int calls = 0;
    parallel_for(TypeParam{5}, TypeParam{5}, [&](TypeParam) { ++calls; });
    parallel_for(TypeParam{6}, TypeParam{5}, [&](TypeParam) { ++calls; });
    parallel_for(limits::max(), limits::min(), [&](TypeParam) { ++calls; });
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(parallel_reduce(
                  limits::max(), limits::min(), 42, [](TypeParam) { return 1; },
                  [](int a, int b) { return a + b; }),
              42);
  });
}

TYPED_TEST(parallel_index, the_longest_range_can_be_stopped) {
  using limits = std::numeric_limits<TypeParam>;
  for (const std::size_t step : {std::size_t{0}, std::size_t{1}, SIZE_MAX / 2}) {
    if (step > 1 && sizeof(TypeParam) > 2) continue;  // a step is not interrupted
    std::stop_source source;
    std::atomic<bool> wrong{false};
    this->rt.run([&] {
      parallel_for(
          source.get_token(), limits::min(), limits::max(),
          [&](TypeParam i) {
            if (i == limits::max()) wrong = true;
            source.request_stop();
          },
          grain{step});
    });
    EXPECT_FALSE(wrong);
    EXPECT_TRUE(source.stop_requested());
  }
}

TEST_F(parallel, a_stopped_loop_does_not_begin) {
  std::stop_source source;
  source.request_stop();
  rt.run([&] {
    int calls = 0;
    parallel_for(source.get_token(), 0, 100, [&](int) { ++calls; });
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(parallel_reduce(
                  source.get_token(), 0, 100, 7, [](int) { return 1; },
                  [](int a, int b) { return a + b; }),
              7);
  });
}

TEST_F(parallel, a_stop_is_heard_between_steps) {
  runtime alone(with_workers(1));
  alone.run([] {
    std::stop_source source;
    int calls = 0;
    parallel_for(
        source.get_token(), 0, 100,
        [&](int i) {
          ++calls;
          if (i == 24) source.request_stop();
        },
        grain{10});
    EXPECT_EQ(calls, 30);
  });
}

TEST_F(parallel, a_stop_is_heard_between_parts) {
  rt.run([] {
    std::stop_source stop;
    std::atomic<unsigned> parts{0};
    const auto part = [&](int, int) {
      ++parts;
      stop.request_stop();
    };
    parallel_for(stop.get_token(), 0, 1'000'000, part, grain{10});
    EXPECT_LE(parts, 4U);  // one of each worker
    EXPECT_GE(parts, 1U);
  });
}

TEST_F(parallel, an_exception_arrives_after_the_calls_in_progress) {
  for (int round = 0; round < scaled(50, 10); ++round) {
    std::atomic<int> active{0};
    try {
      rt.run([&] {
        parallel_for(0, 10'000, [&](int i) {
          ++active;
          if (i == 7000 + round) {
            --active;
            throw std::runtime_error(std::to_string(i));
          }
          --active;
        });
      });
      FAIL();
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(e.what(), std::to_string(7000 + round));
      EXPECT_EQ(active, 0);
    }
  }
}

TEST_F(parallel, exceptions_of_map_and_combine_arrive) {
  rt.run([] {
    EXPECT_THROW(parallel_reduce(
                     0, 1000, 0,
                     [](int i) {
                       if (i == 999) throw 1;
                       return i;
                     },
                     [](int a, int b) { return a + b; }),
                 int);
    EXPECT_THROW(parallel_reduce(
                     0, 1000, 0, [](int i) { return i; },
                     [](int a, int b) {
                       if (b == 500) throw std::string("combine");
                       return a + b;
                     },
                     grain{1}),
                 std::string);
  });
}

TEST_F(parallel, reduce_loses_no_value) {
  ASSERT_EQ(tracked::living(), 0);
  rt.run([] {
    const tracked sum = parallel_reduce(
        0, 2000, tracked(0), [](int i) { return tracked(i); },
        [](tracked a, const tracked& b) { return tracked(a.value() + b.value()); }, grain{1});
    EXPECT_EQ(sum.value(), 1999 * 1000);
  });
  EXPECT_EQ(tracked::living(), 0);
}

TEST_F(parallel, bounds_are_converted_to_the_first_ones_type) {
  rt.run([] {
    std::size_t sum = 0;
    const std::vector<int> items{1, 2, 3};
    sum = parallel_reduce(
        std::size_t{0}, items.size(), std::size_t{0}, [&](std::size_t i) { return i; },
        [](std::size_t a, std::size_t b) { return a + b; });
    EXPECT_EQ(sum, 3u);
    parallel_for(0UL, 3, [](unsigned long) {});
  });
}

// An end that is no index is refused instead of being made another one.
template <class Index, class Last>
void expect_refusal(Index first, Last last) {
  int calls = 0;
  const std::stop_source stopped;
  const auto count = [&](Index) { ++calls; };
  const auto one = [](Index) { return 1; };
  EXPECT_THROW(parallel_for(first, last, count), misuse_error);
  EXPECT_THROW(parallel_for(stopped.get_token(), first, last, count), misuse_error);
  EXPECT_THROW((void)parallel_reduce(first, last, 0, one, std::plus<>()), misuse_error);
  EXPECT_THROW((void)parallel_reduce(stopped.get_token(), first, last, 0, one, std::plus<>()),
               misuse_error);
  EXPECT_EQ(calls, 0);
}

TEST_F(parallel, an_end_beyond_the_first_ones_type_is_misuse) {
  rt.run([] {
    expect_refusal(0, std::size_t{1} << 32 | 5);
    expect_refusal(0, 3'000'000'000U);
    expect_refusal(0, std::int64_t{-3'000'000'000});
    expect_refusal(0U, -1);
    expect_refusal(std::size_t{0}, -1);
    expect_refusal(std::uint8_t{0}, 256);
    expect_refusal(std::int8_t{0}, 255U);
    expect_refusal('a', 1000);
  });
}

TEST_F(parallel, an_end_may_be_of_any_type_that_becomes_an_index) {
  enum { three = 3 };
  struct four {
    operator int() const { return 4; }
  };
  rt.run([] {
    const auto length_to = [](auto last) {
      return parallel_reduce(
          0, last, 0, [](int) { return 1; }, std::plus<>());
    };
    EXPECT_EQ(length_to(three), 3);
    EXPECT_EQ(length_to(four{}), 4);
    EXPECT_EQ(length_to(std::integral_constant<std::size_t, 5>()), 5);
    EXPECT_EQ(length_to('\7'), 7);
    EXPECT_EQ(length_to(true), 1);
    EXPECT_EQ(length_to(std::size_t{8}), 8);
    EXPECT_EQ(length_to(-1), 0);
    std::atomic<int> nine{9}, calls{0};
    parallel_for('\0', nine, [&](char) { ++calls; });
    EXPECT_EQ(calls, 9);
  });
}

TEST_F(parallel, a_body_that_changes_its_index_changes_nothing_else) {
  rt.run([] {
    std::atomic<int> calls{0};
    parallel_for(
        0, 100,
        [&](auto& i) {
          i += 10;
          ++calls;
        },
        grain{50});
    EXPECT_EQ(calls, 100);
    const auto one = [](int& i) {
      i += 10;
      return 1;
    };
    EXPECT_EQ(parallel_reduce(0, 100, 0, one, std::plus<>(), grain{50}), 100);
  });
}

TEST_F(parallel, outside_a_runtime_is_misuse_even_if_empty) {
  EXPECT_THROW(parallel_for(0, 10, [](int) {}), misuse_error);
  EXPECT_THROW(parallel_for(0, 0, [](int) {}), misuse_error);
  EXPECT_THROW(parallel_reduce(
                   0, 10, 0, [](int i) { return i; }, [](int a, int b) { return a + b; }),
               misuse_error);
}

}  // namespace
}  // namespace strata::test
