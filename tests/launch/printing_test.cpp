// SPDX-License-Identifier: Apache-2.0
// What the command prints of itself, and what it does where nobody reads that, or nothing can be
// written.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "command.hpp"
#include "run_to_end.hpp"

namespace {

using launch_test::count_lines;
using launch_test::result;
using launch_test::run_to_end;
using launch_test::words;

TEST(help, lists_every_flag) {
  const result r = run_to_end({"run", "--help"});
  EXPECT_EQ(r.status, 0);
  for (const char* const flag :
       {"-n", "--workers", "--hostfile", "--host", "--transport", "--bind", "--bind-address", "-x",
        "--prefix", "--print-binding", "--start-limit", "--elastic"}) {
    EXPECT_NE(r.out.find(flag), std::string::npos) << flag;
  }
}

const std::vector<words> those_that_print{
    {"--help"},         {"--version"},        {"info"}, {"jobs"}, {"run", "--help"},
    {"info", "--help"}, {"pthread", "--help"}};

// As any other command would, and not with advice on disks.
TEST(run, who_prints_for_nobody_ends_by_the_signal_for_that) {
  const std::string pipe = testing::TempDir() + "strata-pipe-" + std::to_string(::getpid());
  const std::string read_by_nobody = "mkfifo '" + pipe + "' && exec 3<>'" + pipe + "' 4>'" + pipe +
                                     "' 3>&- && rm '" + pipe + "' && exec \"$0\" \"$@\" >&4";
  for (const words& line : those_that_print) {
    const result r = run_to_end(line, {.around = {"sh", "-c", read_by_nobody}});
    EXPECT_EQ(r.status, 141) << line.front() << line.back();
    EXPECT_EQ(r.err, "");
  }
}

TEST(run, what_cannot_be_printed_is_an_error) {
  std::vector<words> all = those_that_print;
  all.push_back({"info", "--routes"});
  for (const words& line : all) {
    const result r = run_to_end(
        line, {.variables = {}, .input = {}, .around = {"sh", "-c", "\"$0\" \"$@\" > /dev/full"}});
    EXPECT_EQ(r.status, 2) << line.front() << line.back();
    EXPECT_EQ(count_lines(r.err), 1U) << r.err;
  }
}

}  // namespace
