// SPDX-License-Identifier: Apache-2.0
// Predicted speed-ups: what the table says, that a seed gives the same one again, and that a wrong
// result is seen.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "run_program.hpp"
#include "strata/runtime.hpp"
#include "tools/predict/programs.hpp"

namespace {

using apps_test::outcome;
using strata::predict::program;

using cells = std::vector<std::string>;

std::vector<cells> cells_of(const std::string& csv) {
  std::vector<cells> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    cells& row = rows.emplace_back();
    std::istringstream words(line);
    for (std::string cell; std::getline(words, cell, ',');) row.push_back(cell);
  }
  return rows;
}

std::vector<cells> predicted(const std::string& arguments) {
  const outcome o = apps_test::run_line("strata-predict " + arguments + " --csv");
  EXPECT_EQ(o.exit_code, 0) << o.err;
  return cells_of(o.out);
}

TEST(predictions, refuse_what_is_no_seed_and_quote_it_as_text) {
  for (const std::string wrong : {"-1", "18446744073709551616", "0x10", "1.5"}) {
    const outcome o = apps_test::run_line("strata-predict fib 10 --seed " + wrong);
    EXPECT_EQ(o.exit_code, 2);
    EXPECT_EQ(o.err, "strata-predict: --seed: '" + wrong +
                         "' is not a whole number from 0 to 18446744073709551615\n");
  }
  EXPECT_EQ(predicted("fib 10 --task-ns 100 --nodes-max 1 --seed 18446744073709551615")[1].back(),
            "18446744073709551615");
  const outcome o = apps_test::run_line("strata-predict fib\x1B[31m 10");
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_EQ(o.err.find('\x1B'), std::string::npos);
}

TEST(predictions, are_a_row_for_each_size_of_the_job) {
  const std::vector<cells> rows = predicted("fib 12 --task-ns 100 --nodes-max 8 --seed 3");
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0],
            (cells{"program", "nodes", "latency_us", "bandwidth_gb_s", "task_ns", "time_us",
                   "speed_up", "efficiency", "tokens_moved", "packets", "seed"}));
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const cells& row = rows[i];
    ASSERT_EQ(row.size(), rows[0].size());
    const double nodes = 1U << (i - 1);
    EXPECT_EQ(row[0], "fib 12");
    EXPECT_EQ(std::stod(row[1]), nodes);
    EXPECT_EQ(row[2], "5");
    EXPECT_EQ(row[3], "1.25");
    EXPECT_EQ(row[4], "100.00");
    EXPECT_NEAR(std::stod(row[6]), std::stod(rows[1][5]) / std::stod(row[5]), 0.001);
    EXPECT_NEAR(std::stod(row[7]), std::stod(row[6]) / nodes, 0.001);
    EXPECT_EQ(row[10], "3");
  }
  // 465 calls, of which 232 add, and the root's two tasks; the end of the last one is not seen.
  EXPECT_NEAR(std::stod(rows[1][5]), 69.9, 0.15);
  EXPECT_EQ(rows[1][8], "0");
  EXPECT_GT(std::stod(rows[4][9]), 0);
}

// Nothing is lost, so a message that takes long is no reason to send it again.
TEST(predictions, are_the_same_where_all_takes_a_thousand_times_as_long) {
  const std::vector<cells> once =
      predicted("fib 10 --nodes-max 4 --task-ns 1e6 --latency-us 1000 --message-us 1");
  const std::vector<cells> slower =
      predicted("fib 10 --nodes-max 4 --task-ns 1e9 --latency-us 1e6 --message-us 1000");
  ASSERT_EQ(once.size(), 4U);
  ASSERT_EQ(slower.size(), 4U);
  for (std::size_t i = 2; i < once.size(); ++i) {
    EXPECT_EQ(slower[i][6], once[i][6]) << "speed-up";
    EXPECT_EQ(slower[i][8], once[i][8]) << "tokens moved";
    EXPECT_EQ(slower[i][9], once[i][9]) << "packets";
  }
}

TEST(predictions, of_more_time_than_there_is_are_refused) {
  if (APPS_SMALL != 0) GTEST_SKIP() << "slow in this build";
  const outcome o = apps_test::run_line("strata-predict fib 31 --task-ns 1e12 --nodes-max 1");
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_EQ(o.err_lines(), 1) << o.err;
  EXPECT_NE(o.err.find("fib 31 would take more than 31 years"), std::string::npos) << o.err;
}

// As many as there can be, most of which never get anything.
TEST(predictions, go_up_to_4096_nodes) {
  if (APPS_SMALL != 0) GTEST_SKIP() << "slow in this build";
  const std::vector<cells> rows = predicted("fib 12 --task-ns 100");
  ASSERT_EQ(rows.size(), 14U);
  EXPECT_EQ(rows[13][1], "4096");
  EXPECT_GT(std::stod(rows[13][6]), 0);
}

// Whose result, the published count, is looked at on every size of the job.
TEST(predictions, of_a_tree_are_made_on_several_nodes) {
  if (APPS_SMALL != 0) GTEST_SKIP() << "slow in this build";
  const std::vector<cells> rows = predicted("uts T3 --task-ns 100 --nodes-max 2");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[2][0], "uts T3");
  EXPECT_GT(std::stod(rows[2][6]), 1.5);
  EXPECT_GT(std::stod(rows[2][8]), 0);
}

TEST(predictions, of_one_seed_are_the_same) {
  const std::string what = "nqueens 6 --task-ns 1000.5 --nodes-max 16 --latency-us 2 --seed ";
  const std::vector<cells> once = predicted(what + "7");
  EXPECT_EQ(predicted(what + "7"), once);
  std::vector<cells> other = predicted(what + "8");
  for (std::size_t i = 1; i < other.size(); ++i) other[i].back() = "7";
  EXPECT_NE(other, once);
}

// Without it the time of a task is measured, and never quite the same.
TEST(predictions, of_one_seed_are_promised_for_one_time_of_a_task) {
  const outcome o = apps_test::run_line("strata-predict --help");
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_NE(o.out.find("with --task-ns the same one"), std::string::npos) << o.out;
}

TEST(predictions, for_people_begin_with_what_they_are_about) {
  const outcome o = apps_test::run_line("strata-predict fib 10 --task-ns 50 --nodes-max 4");
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const std::vector<cells> lines = cells_of(o.out);
  ASSERT_EQ(lines.size(), 5U) << o.out;
  EXPECT_EQ(o.out.rfind("fib 10, 50.0 ns per task; latency 5.00 us, ", 0), 0U) << o.out;
  EXPECT_NE(o.out.find("; seed 0\n"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("speed-up"), std::string::npos) << o.out;
}

TEST(predictions, know_the_results) {
  using strata::predict::result;
  struct case_of {
    program what;
    result expected;
  };
  uts::parameters tree;
  tree.depth = 5;
  const uts::tally counted = uts::serial(tree);
  uts::tally one_less = counted;
  --one_less.leaves;
  strata::options settings;
  settings.workers = 1;
  strata::runtime runtime(settings);
  for (const case_of& c :
       {case_of{strata::predict::find_program("fib", "10"), result::right},
        case_of{strata::predict::fib_program(10, 54), result::wrong},
        case_of{strata::predict::find_program("nqueens", "6"), result::right},
        case_of{strata::predict::nqueens_program(6, 5), result::wrong},
        case_of{strata::predict::uts_program("small", tree, counted), result::right},
        case_of{strata::predict::uts_program("small", tree, one_less), result::wrong}}) {
    result found = result::awaited;
    runtime.run([&] { c.what.begin(&found); });
    runtime.wait_idle();
    EXPECT_EQ(found, c.expected) << c.what.name;
  }
}

TEST(predictions, are_made_of_the_trees_that_there_are) {
  EXPECT_EQ(strata::predict::find_program("uts", "T3").name, "uts T3");
  const outcome o = apps_test::run_line("strata-predict uts T0 --nodes-max 2");
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_NE(o.err.find("there is no tree 'T0'; the choices are T1, "), std::string::npos) << o.err;
}

// docs/launcher.md shows one.
TEST(predictions, are_as_the_manual_shows_them) {
  if (APPS_SMALL != 0) GTEST_SKIP() << "the same in any build, and slow in this one";
  std::ifstream page(APPS_MANUAL);
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  const std::string before = "```\n$ ";
  const std::size_t at = text.find(before + "strata-predict ");
  ASSERT_NE(at, std::string::npos);
  const std::size_t line = at + before.size(), table = text.find('\n', line) + 1;
  const outcome o = apps_test::run_line(text.substr(line, table - 1 - line));
  EXPECT_EQ(o.out, text.substr(table, text.find("```", table) - table)) << "print it anew";
}

}  // namespace
