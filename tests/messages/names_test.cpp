// SPDX-License-Identifier: Apache-2.0
// Names in whole jobs, and what has one.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "command.hpp"
#include "ways_of_jobs.hpp"

namespace {

using launch_test::way;

class names_of_jobs : public launch_test::in_several_ways {};
INSTANTIATE_TEST_SUITE_P(ways, names_of_jobs,
                         testing::Values(way{"one", "1", "auto"}, way{"shm_2", "2", "shm"},
                                         way{"tcp_3", "3", "tcp"}),
                         launch_test::name_of_param);

TEST_P(names_of_jobs, are_looked_up_by_a_thousand_threads_of_each_node) { run("names-at-once"); }
TEST_P(names_of_jobs, of_objects_that_end_lead_to_an_error) { run("named-objects-end"); }
TEST_P(names_of_jobs, may_be_those_of_tasks) { run("named-tasks"); }

// By the counters of all nodes, of two runs that differ in nothing but 160,000 more look-ups.
TEST(names_of_a_job, cost_no_message_once_they_are_known) {
  for (const char* transport : {"shm", "tcp"}) {
    const auto messages_of = [transport](const char* what) {
      launch_test::command c(launch_test::run(
          {"-n", "2", "--workers", "1", "--transport", transport}, {"--strata-stats", what}));
      EXPECT_EQ(c.wait(), 0) << c.err();
      const std::string err = c.err();
      long sent = 0, nodes = 0;
      const std::regex counter("  sent ([0-9]+) messages");
      for (std::sregex_iterator at(err.begin(), err.end(), counter), end; at != end; ++at, ++nodes)
        sent += std::stol((*at)[1]);
      EXPECT_EQ(nodes, 2) << err;
      return sent;
    };
    const long once = messages_of("names-found-once");
    EXPECT_GT(once, 0);
    // Idle nodes say a few words to each other, the more the longer it takes.
    EXPECT_LT(messages_of("names-found-often"), once + 1600) << transport;
  }
}

}  // namespace
