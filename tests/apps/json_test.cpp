// SPDX-License-Identifier: Apache-2.0
// The JSON object is the last line, has the members that scripts rely on, and is absent unless
// asked for.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "run_program.hpp"

namespace {

using apps_test::outcome;
using apps_test::run_line;
using nlohmann::json;

TEST(json_line, has_every_member) {
  for (const std::string line :
       {"fib 15", "nqueens 6", "uts -d 3", "fib 15 --style serial", "fib 15 --style fibers"}) {
    const outcome o = run_line(line + " --json --strata-workers 2");
    ASSERT_EQ(o.exit_code, 0) << o.err;
    const json object = json::parse(o.last_line());
    EXPECT_EQ(object.at("app"), line.substr(0, line.find(' ')));
    EXPECT_TRUE(object.at("parameters").is_object());
    EXPECT_TRUE(object.at("result").is_object());
    EXPECT_TRUE(object.at("seconds").is_number());
    EXPECT_GE(object.at("seconds").get<double>(), 0.0);
    EXPECT_EQ(object.at("nodes"), 1);
    EXPECT_TRUE(object.at("workers").is_number_unsigned());
    EXPECT_TRUE(object.at("style").is_string());
    EXPECT_EQ(object.at("ok"), true);
  }
}

TEST(json_line, parameters_are_those_used) {
  const json fib = json::parse(run_line("fib --json 17").last_line());
  EXPECT_EQ(fib.at("parameters").at("n"), 17);
  EXPECT_EQ(fib.at("result").at("value"), 1597);
  EXPECT_EQ(fib.at("style"), "fork-join");
  const json queens = json::parse(run_line("nqueens 7 --throttle 2 --json").last_line());
  EXPECT_EQ(queens.at("parameters").at("throttle"), 2);
  const json tree = json::parse(run_line("uts --json T1 -d 2").last_line());
  EXPECT_EQ(tree.at("parameters").at("d"), 2);
  EXPECT_EQ(tree.at("parameters").at("a"), 3);
  EXPECT_EQ(tree.at("result").at("known"), false);
}

TEST(json_line, large_values_keep_every_digit) {
  const json object = json::parse(run_line("nqueens 1 --json").last_line());
  EXPECT_TRUE(object.at("result").at("solutions").is_number_unsigned());
}

TEST(json_line, only_when_asked) {
  const outcome o = run_line("fib 5");
  EXPECT_EQ(o.exit_code, 0);
  EXPECT_EQ(o.out.find('{'), std::string::npos);
  EXPECT_NE(o.out.find("fib(5) = 5"), std::string::npos);
}

TEST(help, lists_the_common_flags) {
  for (const char* name : {"fib", "nqueens", "uts"}) {
    const outcome o = run_line(std::string(name) + " --help");
    EXPECT_EQ(o.exit_code, 0);
    EXPECT_EQ(o.err, "");
    for (const char* flag : {"--json", "--style", "--help", "--strata-workers"}) {
      EXPECT_NE(o.out.find(flag), std::string::npos) << name << " " << flag;
    }
  }
}

}  // namespace
