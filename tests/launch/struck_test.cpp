// SPDX-License-Identifier: Apache-2.0
// The launcher is killed, or interrupted, at any moment: the job ends, with no more than one line,
// and nothing is left. At which of its calls follows from a seed.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "command.hpp"

namespace {

using launch_test::command;
using launch_test::contains;
using launch_test::words;

constexpr unsigned latest = 200;  // of the calls that a job takes

std::vector<std::uint64_t> seeds_to_strike_by() {
  if (const char* const wanted = std::getenv("STRATA_TEST_SEED"))
    return {std::strtoull(wanted, nullptr, 10)};
  return {1, 2, 3, 4, 5, 6, 7, 8, std::random_device()()};
}

// But for the remark on too few cores. Nodes that see their line end may say so before they go.
std::size_t count_lines(const std::string& text) {
  std::istringstream in(text);
  std::size_t count = 0;
  for (std::string line; std::getline(in, line);) {
    if (!contains(line, "expect no speed-up") && !contains(line, "the launcher is gone")) ++count;
  }
  return count;
}

class struck : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(signals, struck, testing::Values(SIGKILL, SIGINT), [](const auto& p) {
  return p.param == SIGKILL ? "killed" : "interrupted";
});

TEST_P(struck, launchers_leave_one_line_at_most_and_nothing_else) {
  unsigned strikes = 0;
  const auto seeds = seeds_to_strike_by();
  for (const std::uint64_t seed : seeds) {
    std::printf("STRATA_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    std::mt19937_64 random(seed);
    const unsigned nodes = 1 + static_cast<unsigned>(random() % 3);
    const unsigned k = 1 + static_cast<unsigned>(random() % latest);
    words flags{"-n", std::to_string(nodes), "--bind", "none", "--workers", "1"};
    if (random() % 2 == 0) flags.emplace_back("--prefix");
    // What the guard has to end, in a program that takes part for a while.
    words line = launch_test::run(flags, {"orphan", "join", "describe", "finish"});
    line.insert(line.begin(), STRATA_STRUCK_COMMAND);
    command c(line,
              {.variables = {"STRIKE=" + std::to_string(k) + ":" + std::to_string(GetParam())},
               .input = {},
               .around = {},
               .other = true});
    const int status = c.wait();
    c.wait_for_no_process();
    SCOPED_TRACE("STRATA_TEST_SEED=" + std::to_string(seed) + ": call " + std::to_string(k) +
                 " of " + std::to_string(nodes) + " nodes\n" + c.out() + c.err());
    if (!contains(c.out(), "struck\n")) {
      EXPECT_EQ(status, 0);
    } else {
      ++strikes;
      if (GetParam() == SIGKILL) {
        EXPECT_EQ(status, 128 + SIGKILL);
      } else if (status != 0) {  // the nodes may have finished
        EXPECT_EQ(status, 128 + SIGINT);
      }
    }
    EXPECT_LE(count_lines(c.err()), 1U);
  }
  if (seeds.size() > 1) {
    EXPECT_GT(strikes, 0U);
  }
}

}  // namespace
