// SPDX-License-Identifier: Apache-2.0
// What signals do to a job, and a launcher that dies.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <string>

#include "command.hpp"

namespace {

using launch_test::command;
using launch_test::count_lines;
using launch_test::run;

// Both nodes say that they are there.
void wait_for_both(command& c) {
  ASSERT_TRUE(c.wait_for_output("ready 0\n"));
  ASSERT_TRUE(c.wait_for_output("ready 1\n"));
}

const std::vector<std::string> two{"-n", "2", "--bind", "none", "--workers", "1"};
std::vector<std::string> ready_then(std::vector<std::string> before,
                                    const std::vector<std::string>& after) {
  before.insert(before.end(), {"join", "@0:print:ready 0", "@1:print:ready 1"});
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

class ends_the_job : public testing::TestWithParam<int> {};

TEST_P(ends_the_job, quietly) {
  command c(run(two, ready_then({}, {"sleep"})));
  wait_for_both(c);
  c.signal(GetParam());
  EXPECT_EQ(c.wait(), 128 + GetParam());
  EXPECT_EQ(c.err().find("strata run: node"), std::string::npos) << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

INSTANTIATE_TEST_SUITE_P(signals, ends_the_job, testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST(signals, a_node_may_tidy_up) {
  command c(run(two, ready_then({"@0:catch:2"}, {"sleep"})));
  wait_for_both(c);
  c.signal(SIGINT);
  EXPECT_EQ(c.wait(), 40);
}

TEST(signals, who_ignores_them_is_killed) {
  command c(run(two, ready_then({"ignore:2", "ignore:15"}, {"sleep"})));
  wait_for_both(c);
  c.signal(SIGINT);
  EXPECT_EQ(c.wait(), 130);
  EXPECT_NE(c.err().find("did not end within 2 s of the signal: killed\n"), std::string::npos)
      << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST(signals, the_users_own_reach_every_node) {
  command c(run(two, ready_then({"report:10", "report:12"}, {"sleep"})));
  wait_for_both(c);
  c.signal(SIGUSR1);
  ASSERT_TRUE(c.wait_for_output("S10\nS10\n"));
  c.signal(SIGUSR2);
  ASSERT_TRUE(c.wait_for_output("S12\nS12\n"));
  c.signal(SIGTERM);
  EXPECT_EQ(c.wait(), 143);
}

TEST(signals, a_job_stops_and_continues) {
  command c(run(two, ready_then({"report:18"}, {"sleep"})));
  wait_for_both(c);
  c.signal(SIGTSTP);
  int status = 0;
  ASSERT_EQ(::waitpid(c.pid(), &status, WUNTRACED), c.pid());
  EXPECT_TRUE(WIFSTOPPED(status));
  c.signal(SIGCONT);
  ASSERT_TRUE(c.wait_for_output("S18\n"));
  c.signal(SIGTERM);
  EXPECT_EQ(c.wait(), 143);
  EXPECT_EQ(c.processes_left(), 0);
}

TEST(signals, a_killed_launcher_leaves_nothing) {
  command c(run(two, ready_then({"ignore:2", "ignore:15"}, {"sleep"})));
  wait_for_both(c);
  c.signal(SIGKILL);
  EXPECT_EQ(c.wait(), 137);  // both outputs have ended: nobody holds them
  c.wait_for_no_process();
}

TEST(signals, a_killed_launcher_ends_the_lines) {
  // The script in between takes the kernel's signal; the node itself sees its line end.
  command c({"run", "-n", "1", "sh", "-c", "\"$@\"; exit $?", "sh", launch_test::node_program(),
             "%m", "join", "print:ready", "wait"});
  ASSERT_TRUE(c.wait_for_output("ready\n"));
  c.signal(SIGKILL);
  EXPECT_EQ(c.wait(), 137);
  c.wait_for_no_process();
}

TEST(signals, a_parent_that_ignores_the_ends_of_children_does_no_harm) {
  command c(
      run(two, {"join", "finish"}),
      {.variables = {}, .input = {}, .around = {"sh", "-c", "trap '' CHLD; exec \"$0\" \"$@\""}});
  EXPECT_EQ(c.wait(), 0) << c.err();
}

TEST(signals, ignored_ones_stay_ignored) {
  command c(run(two, ready_then({"report:1"}, {"@0:parent:1", "@0:parent:10", "sleep"})),
            {.variables = {}, .input = {}, .around = {"nohup"}});
  // SIGUSR1 kills the nodes; SIGHUP, which came first, has not.
  EXPECT_EQ(c.wait(), 138);
  EXPECT_EQ(c.out().find("S01"), std::string::npos);
}

TEST(signals, output_that_nobody_reads_ends_the_job) {
  command c(run({"-n", "2", "--prefix"}, {"join", "lines:100000", "wait"}),
            {.variables = {}, .input = {}, .around = {"sh", "-c", "\"$0\" \"$@\" | head -n 1"}});
  EXPECT_EQ(c.wait(), 0);
  EXPECT_EQ(count_lines(c.out()), 1U);
  c.wait_for_no_process();
}

TEST(signals, output_without_room_ends_the_job_with_a_line) {
  // More than the launcher keeps, so it ends a job that would go on; and so little that the job
  // has ended when it is written.
  for (const launch_test::words& actions :
       {launch_test::words{"join", "lines:100000", "wait"}, {"join", "lines:1", "finish"}}) {
    command c(run({"-n", "2", "--prefix"}, actions),
              {.variables = {}, .input = {}, .around = {"sh", "-c", "\"$0\" \"$@\" > /dev/full"}});
    EXPECT_EQ(c.wait(), 2);
    EXPECT_TRUE(launch_test::contains(c.err(), "strata run: standard output: No space left"))
        << c.err();
    c.wait_for_no_process();
  }
}

}  // namespace
