// SPDX-License-Identifier: Apache-2.0
// radixsort from outside, against values that an independent program found, and its parts from
// inside.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/radixsort/nptl.hpp"
#include "apps/radixsort/passes.hpp"
#include "apps/radixsort/repeat.hpp"
#include "apps/radixsort/sort.hpp"
#include "run_program.hpp"

namespace {

using apps_test::outcome;
using apps_test::run_line;
using nlohmann::json;

constexpr bool small = APPS_SMALL != 0;

// engine, sync, workers
class every_engine : public testing::TestWithParam<std::tuple<const char*, const char*, int>> {
 protected:
  static bool forks() { return std::string(std::get<1>(GetParam())) == "fork"; }

  static json result_of(const std::string& arguments) {
    const auto [engine, sync, workers] = GetParam();
    const std::string line = "radixsort " + arguments + " --json --engine " + engine + " --sync " +
                             sync + " --strata-workers " + std::to_string(workers);
    const outcome o = run_line(line);
    EXPECT_EQ(o.exit_code, 0) << line << "\n" << o.err;
    EXPECT_EQ(o.err, "") << line;
    const json object = json::parse(o.last_line(), nullptr, false);
    if (object.is_discarded()) throw std::runtime_error(line + ": not JSON: " + o.last_line());
    EXPECT_EQ(object.at("app"), "radixsort") << line;
    EXPECT_EQ(object.at("ok"), true) << line;
    EXPECT_EQ(object.at("style"), std::string(engine) + " threads, " + sync) << line;
    EXPECT_EQ(object.at("parameters").at("engine"), engine) << line;
    EXPECT_GT(object.at("seconds").get<double>(), 0.0) << line;
    return object.at("result");
  }

  static void expect_sorted(const json& sort, std::uint64_t sum, const char* hash) {
    EXPECT_EQ(sort.at("sum"), sum);
    EXPECT_EQ(sort.at("fnv1a64"), hash);
    EXPECT_EQ(sort.at("ordered"), true);
  }
};

TEST_P(every_engine, every_radix) {
  constexpr unsigned passes[] = {32, 16, 11, 8, 7, 6, 5, 4, 4, 4};
  const unsigned threads = small ? 7 : 64;
  const json result = result_of("10 --radix-bits 1..10 --threads " + std::to_string(threads));
  EXPECT_EQ(result.at("published"), true);
  ASSERT_EQ(result.at("sorts").size(), 10U);
  for (unsigned i = 0; i < 10; ++i) {
    const json& sort = result.at("sorts")[i];
    EXPECT_EQ(sort.at("radix_bits"), i + 1);
    EXPECT_EQ(sort.at("passes"), passes[i]);
    if (forks()) {
      EXPECT_EQ(sort.at("threads_created"), 2 * passes[i] * threads);
    } else {
      EXPECT_EQ(sort.at("barriers"), 2 * passes[i]);
    }
    expect_sorted(sort, 2159748502862, "0e2d5f58c93f1ccb");
  }
}

TEST_P(every_engine, as_many_threads_as_in_the_paper) {
  const json result = result_of("18 --radix-bits 8 --repeat 2");
  expect_sorted(result.at("sorts").at(0), 562174031941870, "e78cd0fb85ee9848");
}

TEST_P(every_engine, as_many_keys_as_in_the_paper) {
  if (small) GTEST_SKIP() << "four million keys take too long in this build";
  const json result = result_of("--radix-bits 10 --threads 16");
  expect_sorted(result.at("sorts").at(0), 9008980678342808, "41629def56b2c1a0");
}

// More threads than keys, one key, one thread, blocks of different size, one digit wider than the
// rest of the key.
TEST_P(every_engine, uneven_blocks) {
  for (const char* arguments :
       {"0", "2 --threads 9", "5 --threads 1 --radix-bits 3", "11 --threads 17 --radix-bits 7"}) {
    EXPECT_EQ(result_of(arguments).at("published"), false) << arguments;
  }
}

std::string name_of(const testing::TestParamInfo<every_engine::ParamType>& info) {
  return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param) + "_" +
         std::to_string(std::get<2>(info.param));
}

INSTANTIATE_TEST_SUITE_P(radixsort, every_engine,
                         testing::Combine(testing::Values("strata", "nptl"),
                                          testing::Values("barrier", "fork"),
                                          testing::Values(1, 2)),
                         name_of);

// Every policy must sort; what it does to time is for bench/bear.
TEST(radixsort, every_policy) {
  for (const std::string policy : {"steal", "rotator", "locked"}) {
    for (const std::string sync : {"barrier", "fork"}) {
      const outcome o =
          run_line("radixsort 10 --json --strata-workers 3 --policy " + policy + " --sync " + sync);
      ASSERT_EQ(o.exit_code, 0) << policy << ": " << o.err;
      const json object = json::parse(o.last_line());
      EXPECT_EQ(object.at("parameters").at("policy"), policy);
      EXPECT_EQ(object.at("workers"), 3);
      EXPECT_EQ(object.at("result").at("idle_sorting_ms").size(), 3U);
      EXPECT_EQ(object.at("result").at("sorts").at(0).at("fnv1a64"), "0e2d5f58c93f1ccb");
    }
  }
}

class refused_sort : public testing::TestWithParam<const char*> {};

TEST_P(refused_sort, one_line_and_code_2) {
  const outcome o = run_line(GetParam());
  EXPECT_EQ(o.exit_code, 2) << o.err;
  EXPECT_EQ(o.err_lines(), 1) << o.err;
  EXPECT_EQ(o.err.rfind("radixsort: ", 0), 0U) << o.err;
  EXPECT_EQ(o.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    radixsort, refused_sort,
    testing::Values("radixsort 29", "radixsort -1", "radixsort many", "radixsort 10 11",
                    "radixsort 10 --threads 0", "radixsort 10 --threads 131073",
                    "radixsort 10 --threads", "radixsort 10 --radix-bits 0",
                    "radixsort 10 --radix-bits 11", "radixsort 10 --radix-bits 4..2",
                    "radixsort 10 --radix-bits 1..", "radixsort 10 --radix-bits ..4",
                    "radixsort 10 --radix-bits 1..4..8", "radixsort 10 --radix-bits 1-4",
                    "radixsort 10 --radix-bits=", "radixsort 10 --sync spin",
                    "radixsort 10 --engine pthread", "radixsort 10 --policy",
                    "radixsort 10 --policy best", "radixsort 10 --engine nptl --policy steal",
                    "radixsort 10 --strata-policy best", "radixsort 10 --repeat 0",
                    "radixsort 10 --policy locked --strata-policy rotator",
                    "radixsort 10 --strata-policy=locked --policy locked",
                    "radixsort 10 --engine nptl --strata-stats",
                    "radixsort 10 --engine nptl --strata-profile", "radixsort 10 --style fibers"));

TEST(radixsort, says_that_threads_of_the_kernel_have_no_runtime) {
  for (const std::string flag : {"stats", "profile"}) {
    const std::string variable = flag == "stats" ? "STRATA_STATS" : "STRATA_PROFILE";
    EXPECT_EQ(run_line("radixsort 10 --engine nptl --strata-" + flag).err,
              "radixsort: --strata-" + flag + " (or " + variable +
                  "): threads of the kernel have no runtime to measure; leave it out, or take "
                  "--engine strata\n");
  }
}

TEST(radixsort, help_names_the_flags) {
  const outcome o = run_line("radixsort --help");
  EXPECT_EQ(o.exit_code, 0);
  for (const char* flag : {"--threads", "--radix-bits", "--sync", "--engine", "--policy",
                           "--repeat", "--json", "--strata-workers"}) {
    EXPECT_NE(o.out.find(flag), std::string::npos) << flag;
  }
}

// Every radix, on both sides of the sizes at which the loops change their step.
void check_loops(const radixsort::digit_loops& loops, unsigned bits) {
  const std::vector<radixsort::key> all = radixsort::draw_keys(11);
  for (const unsigned shift : {0U, 7U, 31U}) {
    const auto digit = [=](radixsort::key k) { return k >> shift & ((1U << bits) - 1); };
    for (const std::size_t n : {0, 1, 3, 511, 512, 513, 1500}) {
      const std::span keys(all.data(), n);
      std::vector<radixsort::key> expected(keys.begin(), keys.end());
      std::stable_sort(expected.begin(), expected.end(),
                       [&](auto a, auto b) { return digit(a) < digit(b); });
      // As two threads do it, each with a part. The later one first: what it has moved stays.
      const std::array parts = {keys.first(n / 3), keys.subspan(n / 3)};
      std::array<std::vector<radixsort::position>, 2> counts;
      for (std::size_t part = 0; part < 2; ++part) {
        counts[part].assign(std::size_t{1} << bits, 99);
        loops.count(parts[part], shift, counts[part].data());
        for (unsigned d = 0; d < counts[part].size(); ++d) {
          ASSERT_EQ(counts[part][d], std::count_if(parts[part].begin(), parts[part].end(),
                                                   [&](auto k) { return digit(k) == d; }))
              << "digit " << d << " of " << bits << " bits, " << n << " keys";
        }
      }
      radixsort::position before = 0;
      for (std::size_t d = 0; d < counts[0].size(); ++d) {
        for (auto& count : counts) before += std::exchange(count[d], before);
      }
      std::vector<radixsort::key> moved(n);
      for (const std::size_t part : {1U, 0U})
        loops.move(parts[part], shift, counts[part].data(), moved.data());
      ASSERT_EQ(moved, expected) << bits << " bits at " << shift << ", " << n << " keys";
    }
  }
}

TEST(digit_loops, keep_order_and_lose_nothing) {
  for (unsigned bits = 1; bits <= radixsort::radix_bits_max; ++bits) {
    check_loops(radixsort::loops_for(bits), bits);
    check_loops(radixsort::plain_loops_for(bits), bits);
  }
}

// An engine that runs out of threads.
struct scarce {
  static inline int left = 0;
  class thread : public std::thread {
   public:
    template <class F>
    explicit thread(F&& f) : std::thread((take(), std::forward<F>(f))) {}

   private:
    static void take() {
      if (left-- == 0) {
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      }
    }
  };
  template <class Completion>
  using barrier = std::barrier<Completion>;
};

// Those that were made must not wait for ever for those that were not.
TEST(radixsort, ends_when_threads_are_refused) {
  std::vector<radixsort::key> keys = radixsort::draw_keys(8);
  std::vector<radixsort::key> other(keys.size());
  for (const int made : {0, 1, 7}) {
    radixsort::passes work(keys, other, 8, 4);
    scarce::left = made;
    EXPECT_THROW(radixsort::sort_by_barrier<scarce>(work), std::system_error) << made;
    scarce::left = made;
    EXPECT_THROW(radixsort::sort_by_fork<scarce>(work), std::system_error) << made;
  }
  radixsort::passes work(keys, other, 8, 4);
  scarce::left = 8;
  radixsort::sort_by_barrier<scarce>(work);
  EXPECT_TRUE(radixsort::summary_of(work.sorted()).ordered);
}

TEST(radixsort, truth_is_published_or_worked_out) {
  EXPECT_TRUE(radixsort::truth_of(10).published);
  const radixsort::truth worked_out = radixsort::truth_of(9);
  EXPECT_FALSE(worked_out.published);
  EXPECT_TRUE(worked_out.sorted.ordered);
  std::vector<radixsort::key> keys = radixsort::draw_keys(9);
  EXPECT_EQ(worked_out.sorted.sum, radixsort::summary_of(keys).sum);
  EXPECT_NE(worked_out.sorted.fnv1a64, radixsort::summary_of(keys).fnv1a64);
  std::sort(keys.begin(), keys.end());
  std::swap(keys[100], keys[101]);
  EXPECT_FALSE(worked_out.sorted == radixsort::summary_of(keys));
}

// How often 2^10 keys were sorted when the sort of that number, and no other, did nothing.
std::pair<unsigned, bool> times_and_right(unsigned repetitions, unsigned idle) {
  const std::vector<radixsort::key> drawn = radixsort::draw_keys(10);
  std::vector<radixsort::key> keys(drawn.size());
  std::vector<radixsort::key> other(drawn.size());
  const radixsort::summary wanted = radixsort::truth_of(10).sorted;
  unsigned times = 0;
  const radixsort::repeated r = radixsort::repeat(repetitions, drawn, keys, other, 1, 8, wanted,
                                                  [&](radixsort::passes& work) {
                                                    if (++times != idle) {
                                                      for (; !work.done(); work.swap()) {
                                                        work.count(0);
                                                        work.merge();
                                                        work.transfer(0);
                                                      }
                                                    }
                                                    return 1.0;
                                                  });
  EXPECT_EQ(r.seconds, 1.0);
  return {times, r.found == wanted};
}

TEST(radixsort_repeat, a_wrong_sort_is_seen_whichever_it_is) {
  EXPECT_EQ(times_and_right(3, 0), std::pair(3U, true));
  EXPECT_EQ(times_and_right(1, 0), std::pair(1U, true));
  for (unsigned wrong = 1; wrong <= 3; ++wrong) {
    EXPECT_EQ(times_and_right(3, wrong), std::pair(wrong, false));
  }
}

}  // namespace
