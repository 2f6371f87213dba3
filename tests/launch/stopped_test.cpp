// SPDX-License-Identifier: Apache-2.0
// Ctrl-Z while a job begins: processes stop that are not yet what the launcher waits for. And
// Ctrl-C, which nodes do not get that are started after it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <string>

#include "command.hpp"
#include "tests/common/run_in_time.hpp"

namespace {

using launch_test::command;
using launch_test::result;
using launch_test::words;

words line_of_two(const words& actions) {
  words all = launch_test::run({"-n", "2", "--bind", "none", "--workers", "1"}, actions);
  all.insert(all.begin(), STRATA_STRUCK_COMMAND);
  return all;
}

class two_nodes {
 public:
  explicit two_nodes(const std::string& who_stops)
      : command_(line_of_two({"join", "@0:print:ok", "finish"}),
                 {.variables = {"STOP=" + who_stops}, .other = true}) {}
  command* operator->() { return &command_; }

 private:
  command command_;
};

TEST(stopped, nodes_that_are_not_yet_programs_are_continued) {
  two_nodes job("nodes");
  EXPECT_EQ(job->wait(), 0) << job->err();
  EXPECT_EQ(job->out(), "ok\n");
}

TEST(stopped, they_do_not_outlive_a_killed_launcher) {
  two_nodes job("nodes:" + std::to_string(SIGKILL));
  EXPECT_EQ(job->wait(), 128 + SIGKILL);
  job->wait_for_no_process();
}

TEST(stopped, a_guard_is_not_stopped_while_it_begins) {
  two_nodes job("guard");
  EXPECT_EQ(job->wait(), 0) << job->err();
  EXPECT_EQ(job->out(), "ok\n");
}

TEST(interrupted, nodes_that_are_started_after_it_hear_of_it) {
  const result r = strata::test::run_in_time([] {
    command c(line_of_two({"@0:report:2", "@0:catch:18", "@0:print:ready", "sleep"}),
              {.variables = {"STOP=launcher"}, .terminal = true, .other = true});
    EXPECT_TRUE(c.wait_for_output("ready\n"));
    int status = 0;
    EXPECT_EQ(::waitpid(c.pid(), &status, WUNTRACED), c.pid());
    EXPECT_TRUE(WIFSTOPPED(status));
    c.type("\x03");
    EXPECT_TRUE(c.wait_for_output("S02\n"));
    // Node 0 ends by it: the launcher passes it on.
    c.signal(SIGCONT);
    status = c.wait();
    return result{status, c.out(), c.err()};
  });
  EXPECT_EQ(r.status, 40);
  EXPECT_FALSE(launch_test::contains(r.err, "did not end")) << r.err;
}

}  // namespace
