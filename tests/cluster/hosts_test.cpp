// SPDX-License-Identifier: Apache-2.0
// Jobs on four hosts of two nodes each: shared memory within a host, TCP between hosts; or UCX.
#include "four_hosts.hpp"

namespace {

using launch_test::command;
using launch_test::four_hosts;

class jobs_on : public four_hosts {
 protected:
  static void expect_ok(const std::string& what, const std::string& transport = "auto") {
    command c(
        launch_test::run({"-n", "8", "--transport", transport, "--host", all_hosts()}, {what}),
        from_hub());
    EXPECT_EQ(c.wait(), 0) << c.err();
    EXPECT_EQ(c.out(), "ok\n") << c.err();
    EXPECT_EQ(c.processes_left(), 0);
  }
};

TEST_F(jobs_on, compute_with_tokens) { expect_ok("tokens"); }
TEST_F(jobs_on, move_blocks_before_they_signal) { expect_ok("blocks"); }
TEST_F(jobs_on, survive_floods) { expect_ok("flood"); }
TEST_F(jobs_on, bring_results_of_calls_home) { expect_ok("calls"); }
TEST_F(jobs_on, fail_and_go_on) { expect_ok("fiber-exceptions"); }

#if defined(STRATA_HAS_UCX)
TEST_F(jobs_on, move_blocks_over_ucx) { expect_ok("blocks", "ucx"); }
TEST_F(jobs_on, survive_floods_over_ucx) { expect_ok("flood", "ucx"); }
#endif

TEST_F(jobs_on, hear_of_a_killed_node) {
  command c(launch_test::run({"-n", "4", "--host", all_hosts()}, {"kill"}), from_hub());
  EXPECT_NE(c.wait(), 0);
  EXPECT_NE(c.out().find("caught: node 1 is lost"), std::string::npos) << c.out();
  EXPECT_EQ(c.processes_left(), 0);
}

}  // namespace
