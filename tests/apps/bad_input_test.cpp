// SPDX-License-Identifier: Apache-2.0
// What a user can put right is one line on stderr that begins with the program's name, exit code 2,
// and nothing on standard output.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_program.hpp"

namespace {

using apps_test::outcome;

class refused : public testing::TestWithParam<const char*> {};

TEST_P(refused, one_line_and_code_2) {
  const std::string line = GetParam();
  const outcome o = apps_test::run_line(line);
  EXPECT_EQ(o.exit_code, 2) << o.err;
  EXPECT_EQ(o.err_lines(), 1) << o.err;
  EXPECT_EQ(o.err.rfind(line.substr(0, line.find(' ')) + ": ", 0), 0U) << o.err;
  EXPECT_EQ(o.out, "");
}

INSTANTIATE_TEST_SUITE_P(fib, refused,
                         testing::Values("fib", "fib 94", "fib 18446744073709551616",
                                         "fib 99999999999999999999999", "fib -1", "fib -- -1",
                                         "fib abc", "fib 3x", "fib 3.5", "fib 010", "fib 0x10",
                                         "fib 10 20", "fib 10 --no-such-flag", "fib 10 --style",
                                         "fib 10 --style threads", "fib 10 --style SERIAL",
                                         "fib 10 --strata-no-such-flag=1",
                                         "fib 10 --strata-workers 0", "fib 10 --strata-workers -1",
                                         "fib 10 --strata-workers many", "fib 10 --strata-workers",
                                         "fib 10 --strata-networks foo",
                                         "fib 10 --style serial --strata-stats",
                                         "fib 10 --style serial --strata-profile"));

INSTANTIATE_TEST_SUITE_P(nqueens, refused,
                         testing::Values("nqueens", "nqueens 0", "nqueens 28", "nqueens 4294967297",
                                         "nqueens -5", "nqueens eight", "nqueens 8 --throttle",
                                         "nqueens 8 --throttle x", "nqueens 8 --throttle=-1",
                                         "nqueens 8 --throttle 28", "nqueens 8 9",
                                         "nqueens 8 --queens",
                                         "nqueens 8 --strata-stats --style serial"));

INSTANTIATE_TEST_SUITE_P(uts, refused,
                         testing::Values("uts T9", "uts t1", "uts T1 T3", "uts -t 4", "uts -t geo",
                                         "uts -a 5", "uts -d 0", "uts -d 99999999999", "uts -b x",
                                         "uts -b nan", "uts -b inf", "uts -b=-1", "uts -b 1e300",
                                         "uts -r 4294967296", "uts -q 1.5", "uts -q nan",
                                         "uts -m -3", "uts -m 1.5", "uts -t",
                                         "uts -t 0 -q 0.5 -m 2", "uts -t 0 -q 1 -m 1",
                                         "uts -a 1 -d 1", "uts -a 1 -b 0.5", "uts -z 3"));

#if defined(APPS_PREDICT)
INSTANTIATE_TEST_SUITE_P(
    predict, refused,
    testing::Values("strata-predict", "strata-predict fib 10 --latency-us nan",
                    "strata-predict fib 10 --bandwidth nan",
                    "strata-predict fib 10 --message-us nan", "strata-predict fib 10 --task-ns nan",
                    "strata-predict fib 10 --bandwidth 0", "strata-predict fib 10 --latency-us -1",
                    "strata-predict fib 10 --seed x", "strata-predict fib 10 --task-ns x"));
#endif

TEST(refused_output, full_disk) {
  for (const char* name : {"fib", "nqueens"}) {
    for (const std::string flag : {"--json", "--help", "--strata-help"}) {
      const outcome o = apps_test::run({name, "8", flag}, "/dev/full");
      EXPECT_EQ(o.exit_code, 2) << flag << o.err;
      EXPECT_EQ(o.err_lines(), 1) << flag << o.err;
    }
  }
}

TEST(refused_words, are_explained_in_plain_ones) {
  EXPECT_EQ(apps_test::run_line("fib 20 --style serial --strata-stats").err,
            "fib: --strata-stats (or STRATA_STATS): the serial style has no runtime to measure; "
            "leave it out, or take another style\n");
  EXPECT_NE(apps_test::run_line("fib 20 --style").err.find("--style needs a value"),
            std::string::npos);
  EXPECT_NE(apps_test::run_line("uts T1 --tree T2").err.find("is given more than once"),
            std::string::npos);
  for (const char* const line : {"fib --no-such-flag 3", "fib 20 --no-such-flag 3"})
    EXPECT_NE(apps_test::run_line(line).err.find("unknown flag --no-such-flag"), std::string::npos)
        << line;
  EXPECT_NE(
      apps_test::run_line("fib 20 --strata-networks foo").err.find("--strata-networks: 'foo'"),
      std::string::npos);
}

// What is no text would be a command for the terminal.
TEST(refused_words, are_quoted_as_text) {
  const outcome o = apps_test::run({"fib", "\x1B[31mred \xFF gr\xC3\xBCn\xC2\x9B\n"});
  EXPECT_EQ(o.err.find('\x1B'), std::string::npos);
  EXPECT_NE(o.err.find("\\x1B[31mred \\xFF gr\xC3\xBCn\\xC2\\x9B"), std::string::npos) << o.err;
  EXPECT_EQ(o.err_lines(), 1);
}

#if defined(APPS_PREDICT)
TEST(refused_output, full_disk_for_predictions) {
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"strata-predict", "--help"},
        // The whole table would take minutes: the first line that is lost is the last.
        {"strata-predict", "fib", "20", "--nodes-max", "4096", "--task-ns", "10"}}) {
    const outcome o = apps_test::run(line, "/dev/full");
    EXPECT_EQ(o.exit_code, 2) << o.err;
    EXPECT_EQ(o.err_lines(), 1) << o.err;
  }
}
#endif

}  // namespace
