// SPDX-License-Identifier: Apache-2.0
// The programs as jobs of several nodes: what is not asked for is the style in which all of them
// work.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_program.hpp"

namespace {

using nlohmann::json;
using command_line = std::vector<std::string>;

json report_of(const command_line& program) {
  command_line line = {"strata", "run", "-n", "2", "--workers", "1", APPS_BIN_DIR "/" + program[0]};
  line.insert(line.end(), program.begin() + 1, program.end());
  line.emplace_back("--json");
  const apps_test::outcome o = apps_test::run(line);
  EXPECT_EQ(o.exit_code, 0) << o.err;
  return json::parse(o.last_line());
}

TEST(several_nodes, all_work_unless_a_style_is_given) {
  for (const command_line& program :
       {command_line{"nqueens", "7"}, command_line{"uts", "-d", "4"}}) {
    const json report = report_of(program);
    EXPECT_EQ(report.at("nodes"), 2);
    EXPECT_EQ(report.at("style"), "fibers") << program[0];
    command_line with_style = program;
    with_style.insert(with_style.end(), {"--style", "fork-join"});
    EXPECT_EQ(report_of(with_style).at("style"), "fork-join") << program[0];
  }
  // Its forks are calls, which leave.
  EXPECT_EQ(report_of({"fib", "15"}).at("style"), "fork-join");
  // A job has a runtime in any case.
  EXPECT_EQ(report_of({"fib", "15", "--style", "serial", "--strata-stats"}).at("style"), "serial");
}

// The work travels, and what comes of it is the same.
TEST(several_nodes, count_the_tree_that_one_does) {
  const auto counted = [](json report) { return report.at("result"); };
  const apps_test::outcome alone = apps_test::run_line("uts -d 8 --style serial --json");
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  const json tree = counted(json::parse(alone.last_line()));
  for (const char* style : {"fibers", "fork-join"})
    EXPECT_EQ(counted(report_of({"uts", "-d", "8", "--style", style})), tree) << style;
}

}  // namespace
