// SPDX-License-Identifier: Apache-2.0
// A node that the system does not let run for ten seconds, as a debugger or a machine without
// memory does: nobody takes it for lost, and nothing that was under way is. One that is stopped for
// good ends its job, whatever the others do.
#include <gtest/gtest.h>

#include <csignal>
#include <deque>
#include <string>

#include "command.hpp"
#include "ways_of_jobs.hpp"

namespace {

using launch_test::command;

// All at once, so that they wait together.
TEST(a_paused_node, goes_on_and_so_does_its_job) {
  std::deque<command> jobs;
  for (const char* const transport : launch_test::transports) {
    for (const char* const node : {"pause-0", "pause-1"}) {
      jobs.emplace_back(launch_test::run(
          {"-n", "2", "--workers", "1", "--bind", "none", "--transport", transport}, {node}));
    }
  }
  for (command& c : jobs) {
    EXPECT_EQ(c.wait(), 0) << c.err();
    EXPECT_EQ(c.out(), "has paused\nok\n") << c.err();
    EXPECT_EQ(c.processes_left(), 0);
  }
}

// Its process lives, and so may that of the node that hears nothing from it any more.
TEST(a_stopped_node, ends_its_job_though_it_is_node_0) {
  std::deque<command> jobs;
  for (const char* const what : {"stop-0", "stop-0-while-1-is-deaf"}) {
    jobs.emplace_back(
        launch_test::run({"-n", "2", "--workers", "1", "--bind", "none", "--transport", "tcp"},
                         {"--strata-lost-after-ms=5000", what}));
  }
  for (command& c : jobs) {
    EXPECT_EQ(c.wait(), 1);
    EXPECT_EQ(c.err(), "strata run: node 0 is lost: silent for 5000 ms; the job is stopped\n");
    EXPECT_EQ(c.processes_left(), 0);
  }
}

}  // namespace
