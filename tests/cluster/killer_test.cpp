// SPDX-License-Identifier: Apache-2.0
// kill -9 of any node at any moment: the job ends, not with success, one line names the node, and
// nothing is left. What is killed, and when, follows from a seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "../common/slow_builds.hpp"
#include "command.hpp"

namespace {

using launch_test::command;
using launch_test::contains;

struct moment {
  const char* name;
  unsigned latest;  // see killed_program.cpp
};
// A job of the program takes as long as the latest delay, or less.
constexpr moment moments[] = {{"joining", 48},
                              {"running", 20},
                              {"ending", 32},
                              {"delay", strata::test::scaled(20'000U, 400'000U)}};

struct plan {
  unsigned nodes, victim;
  moment when;
  unsigned k;
};

// Seeds that follow each other take all moments in turn.
plan drawn(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  plan p{};
  p.when = moments[seed % std::size(moments)];
  p.nodes = 3 + static_cast<unsigned>(random() % 2);
  p.victim = static_cast<unsigned>(random() % p.nodes);
  // Early ones are likelier: more happens there.
  const std::uint64_t most = 1 + random() % p.when.latest;
  p.k = 1 + static_cast<unsigned>(random() % most);
  return p;
}

std::vector<std::uint64_t> seeds_to_kill_by() {
  if (const char* const wanted = std::getenv("STRATA_TEST_SEED"))
    return {std::strtoull(wanted, nullptr, 10)};
  return {3, 14, 28, 29, 92, std::random_device()()};
}

// But for the remark on too few cores.
std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) {
    if (!contains(line, "expect no speed-up")) all.push_back(line);
  }
  return all;
}

// The memory that the nodes of a job share has no name, so it is gone with the last of them. What
// others have here, or make meanwhile, is not theirs: semaphores, say.
std::set<std::string> named_memory() {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm", none)) {
    const std::string name = file.path().filename();
    if (contains(name, "strata") && !name.starts_with("sem.")) names.insert(name);
  }
  return names;
}

class killer : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(transports, killer, testing::Values("shm", "tcp", "udp"),
                         [](const auto& p) { return std::string(p.param); });
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(ucx, killer, testing::Values("ucx"),
                         [](const auto& p) { return std::string(p.param); });
#endif

TEST_P(killer, of_any_node_at_any_moment_leaves_one_line_and_nothing_else) {
  for (const std::uint64_t seed : seeds_to_kill_by()) {
    std::printf("STRATA_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    const plan p = drawn(seed);
    const auto before = named_memory();
    const std::string name = "node " + std::to_string(p.victim);
    SCOPED_TRACE("STRATA_TEST_SEED=" + std::to_string(seed) + ": " + name + " of " +
                 std::to_string(p.nodes) + ", " + p.when.name + " " + std::to_string(p.k));
    command c(launch_test::run({"-n", std::to_string(p.nodes), "--workers", "1", "--bind", "none",
                                "--transport", GetParam()},
                               {std::to_string(p.victim), p.when.name, std::to_string(p.k)}));
    const int status = c.wait();
    const std::vector<std::string> lines = lines_of(c.err());
    // What is to come too late does not come.
    if (lines.empty() && !contains(c.out(), name + " dies")) {
      EXPECT_EQ(status, 0) << c.out();
      EXPECT_EQ(c.out(), "ok\n");
      EXPECT_STRNE(p.when.name, "running");
    } else {
      EXPECT_EQ(status, 137) << c.out() << c.err();
      ASSERT_EQ(lines.size(), 1U) << c.err();
      EXPECT_EQ(lines[0].rfind("strata run: " + name + " was killed by signal 9 (SIGKILL)", 0), 0U)
          << lines[0];
    }
    EXPECT_FALSE(contains(c.out(), "not ok")) << c.out();
    // Before all have joined it may be another one of which the program hears first.
    if (contains(c.out(), "caught") && p.when.name == std::string("running")) {
      EXPECT_TRUE(contains(c.out(), "caught: " + name + " is lost")) << c.out();
    }
    EXPECT_EQ(c.processes_left(), 0);
    const auto after = named_memory();
    EXPECT_TRUE(std::includes(before.begin(), before.end(), after.begin(), after.end()));
  }
}

}  // namespace
