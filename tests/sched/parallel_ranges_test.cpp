// SPDX-License-Identifier: Apache-2.0
// Loops over what has iterators visit every element once, reductions keep the order of elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <forward_list>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <ranges>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "strata/global_ptr.hpp"
#include "strata/parallel.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

class ranges_by_workers : public ::testing::TestWithParam<unsigned> {
 protected:
  runtime rt{with_workers(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(workers, ranges_by_workers, ::testing::Values(1, 2, 4, 8, 64),
                         ::testing::PrintToStringParamName());

constexpr std::size_t some_steps[] = {0, 1, 7, 100'000};

std::vector<int> first_numbers(int n) {
  std::vector<int> all;
  for (int i = 0; i < n; ++i) all.push_back(i);
  return all;
}

// Each element of one that begins as 0, 1, 2, ... is visited once: it is as it should be then.
template <class Container>
void expect_each_element_once(std::size_t step) {
  for (const int n : {0, 1, 2, 63, 1000, scaled(20'000, 4000)}) {
    const std::vector<int> numbers = first_numbers(n);
    Container all(numbers.begin(), numbers.end());
    parallel_for_each(
        all, [](int& x) { x = 2 * x + 1; }, grain{step});
    int i = 0;
    for (const int x : all) ASSERT_EQ(x, 2 * i++ + 1);
    ASSERT_EQ(i, n);
  }
}

TEST_P(ranges_by_workers, each_element_is_visited_once) {
  rt.run([] {
    for (const std::size_t step : some_steps) {
      expect_each_element_once<std::vector<int>>(step);
      expect_each_element_once<std::list<int>>(step);
      expect_each_element_once<std::forward_list<int>>(step);  // which has no size
    }
  });
}

TEST_P(ranges_by_workers, any_range_will_do) {
  rt.run([] {
    int plain[300] = {};
    std::array<int, 300> array{};
    std::map<int, int> map;
    const std::vector<int> constant = first_numbers(300);
    for (const int i : constant) map[i] = 0;
    std::atomic<int> sum{0};
    const auto add_one = [](int& x) { ++x; };
    parallel_for_each(plain, add_one, grain{1});
    parallel_for_each(array, add_one, grain{1});
    parallel_for_each(std::span(array), add_one, grain{1});
    parallel_for_each(
        map, [](std::pair<const int, int>& one) { one.second = one.first; }, grain{1});
    parallel_for_each(
        constant, [&sum](const int& x) { sum += x; }, grain{1});
    const std::vector<bool> bits(300, true);  // whose iterators give values, not references
    parallel_for_each(
        bits, [&sum](bool x) { sum += x ? 1 : 0; }, grain{1});
    for (std::size_t i = 0; i < 300; ++i) {
      EXPECT_EQ(plain[i], 1);
      EXPECT_EQ(array[i], 2);
      EXPECT_EQ(map[static_cast<int>(i)], static_cast<int>(i));
    }
    EXPECT_EQ(sum, 299 * 150 + 300);
  });
}

TEST_P(ranges_by_workers, reductions_keep_the_order_of_elements) {
  rt.run([] {
    std::vector<std::string> words;
    std::string expected;
    for (const int i : first_numbers(scaled(3000, 600))) {
      words.push_back(std::to_string(i) + ',');
      expected += words.back();
    }
    const std::list<std::string> linked(words.begin(), words.end());
    const auto join = [](std::string a, const std::string& b) { return std::move(a) + b; };
    for (const std::size_t step : some_steps) {
      const grain g{step};
      EXPECT_EQ(parallel_reduce(words, std::string(), std::identity(), join, g), expected);
      EXPECT_EQ(parallel_reduce(linked, std::string(), std::identity(), join, g), expected);
      EXPECT_EQ(
          parallel_reduce(words.begin(), words.end(), std::string(), std::identity(), join, g),
          expected);
      EXPECT_EQ(parallel_reduce(
                    linked, std::size_t{0}, [](const std::string& word) { return word.size(); },
                    std::plus<>(), g),
                expected.size());
    }
    words.clear();
    EXPECT_EQ(parallel_reduce(words, std::string("none"), std::identity(), join), "none");
  });
}

// Without what is before, or from there on.
TEST_P(ranges_by_workers, what_lies_between_two_iterators_is_visited) {
  rt.run([] {
    std::vector<int> all = first_numbers(1000);
    std::list<int> linked(all.begin(), all.end());
    const auto negate = [](int& x) { x = -x; };
    parallel_for_each(all.begin() + 10, all.end() - 10, negate, grain{1});
    // By a number of elements, not an end.
    parallel_for_each(std::counted_iterator(std::next(linked.begin(), 10), 980),
                      std::default_sentinel, negate, grain{1});
    for (int i = 0; i < 1000; ++i)
      EXPECT_EQ(all[static_cast<std::size_t>(i)], i < 10 || i >= 990 ? i : -i);
    EXPECT_TRUE(std::ranges::equal(all, linked));
  });
}

TEST_P(ranges_by_workers, bodies_of_two_iterators_get_parts_that_are_the_range) {
  rt.run([] {
    for (const int n : {0, 1, 7, 64, 5000}) {
      const std::vector<int> numbers = first_numbers(n);
      std::list<int> all(numbers.begin(), numbers.end());
      for (const std::size_t step : {0U, 1U, 10U, 10'000U}) {
        std::atomic<int> elements{0}, longest{0}, empty{0};
        parallel_for_each(
            all,
            [&](std::list<int>::iterator begin, std::list<int>::iterator end) {
              const auto length = static_cast<int>(std::distance(begin, end));
              elements += length;
              if (length == 0) ++empty;
              for (int before = longest;
                   before < length && !longest.compare_exchange_weak(before, length);) {
              }
            },
            grain{step});
        EXPECT_EQ(elements, n);
        EXPECT_EQ(empty, 0);
        if (step != 0) {
          EXPECT_LE(longest, static_cast<int>(step));
        }
        const auto as_text = [](auto begin, auto end) {
          std::string text;
          for (; begin != end; ++begin) text += static_cast<char>('a' + *begin % 26);
          return text;
        };
        EXPECT_EQ(
            parallel_reduce(all, std::string(), as_text, std::plus<std::string>(), grain{step}),
            as_text(numbers.begin(), numbers.end()));
      }
    }
  });
}

TEST_P(ranges_by_workers, members_of_elements_are_bodies_and_maps) {
  struct particle {
    void move() { place += speed; }
    int place = 0, speed = 1;
  };
  rt.run([] {
    std::vector<particle> all(500);
    for (int i = 0; i < 3; ++i) parallel_for_each(all, &particle::move, grain{1});
    EXPECT_EQ(parallel_reduce(all, 0, &particle::place, std::plus<>(), grain{1}), 1500);
  });
}

TEST_P(ranges_by_workers, loops_over_rows_and_their_elements_nest) {
  rt.run([] {
    std::list<std::vector<int>> rows(50, first_numbers(50));
    std::atomic<int> sum{0};
    parallel_for_each(rows, [&](const std::vector<int>& row) {
      parallel_for_each(row, [&](int x) { sum += x; });
    });
    EXPECT_EQ(sum, 50 * 49 * 25);
  });
}

TEST_P(ranges_by_workers, a_stop_is_heard_between_steps) {
  rt.run([] {
    const std::vector<int> numbers = first_numbers(100'000);
    const std::list<int> all(numbers.begin(), numbers.end());
    std::stop_source stop;
    std::atomic<unsigned> visited{0};
    const auto visit = [&](int) {
      ++visited;
      stop.request_stop();
    };
    parallel_for_each(stop.get_token(), all, visit, grain{10});
    EXPECT_GE(visited, 1U);
    EXPECT_LE(visited, 10 * num_workers());  // a step of each
    visited = 0;
    // None begins any more.
    parallel_for_each(stop.get_token(), all, visit);
    parallel_for_each(stop.get_token(), all.begin(), all.end(), visit);
    const auto one = [&](int x) {
      ++visited;
      return x;
    };
    EXPECT_EQ(parallel_reduce(stop.get_token(), all, 7, one, std::plus<>()), 7);
    EXPECT_EQ(parallel_reduce(stop.get_token(), all.begin(), all.end(), 7, one, std::plus<>()), 7);
    EXPECT_EQ(visited, 0U);
    EXPECT_EQ(parallel_reduce(std::stop_token(), numbers, 0L, std::identity(), std::plus<>()),
              99'999L * 50'000);
  });
}

TEST_P(ranges_by_workers, an_exception_of_a_body_arrives) {
  rt.run([] {
    std::list<int> all(1000);
    *std::next(all.begin(), 700) = 1;
    const auto look = [](int x) {
      if (x == 1) throw std::out_of_range("one");
      return x;
    };
    EXPECT_THROW(parallel_for_each(all, look, grain{1}), std::out_of_range);
    EXPECT_THROW((void)parallel_reduce(all, 0, look, std::plus<>(), grain{1}), std::out_of_range);
  });
}

TEST(ranges, outside_a_runtime_are_misuse_even_if_empty) {
  std::vector<int> none;
  EXPECT_THROW(parallel_for_each(none, [](int) {}), misuse_error);
  EXPECT_THROW(parallel_for_each(none.begin(), none.end(), [](int) {}), misuse_error);
  EXPECT_THROW((void)parallel_reduce(none, 0, std::identity(), std::plus<>()), misuse_error);
}

}  // namespace
}  // namespace strata::test
