// SPDX-License-Identifier: Apache-2.0
// Ctrl-Z while a job begins: processes stop that are not yet what the launcher waits for.
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "command.hpp"

namespace {

using launch_test::command;
using launch_test::words;

class two_nodes {
 public:
  explicit two_nodes(const std::string& who_stops)
      : command_(line(), {.variables = {"STOP=" + who_stops}, .other = true}) {}
  command* operator->() { return &command_; }

 private:
  static words line() {
    words all = launch_test::run({"-n", "2", "--bind", "none", "--workers", "1"},
                                 {"join", "@0:print:ok", "finish"});
    all.insert(all.begin(), STRATA_STRUCK_COMMAND);
    return all;
  }
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

}  // namespace
