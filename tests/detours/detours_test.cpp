// SPDX-License-Identifier: Apache-2.0
// Jobs on several networks whose connections end, each on its own: nodes go on talking by others,
// and only who is reached by nobody is lost.
#include <gtest/gtest.h>

#include <string>

#include "chain_of_hosts.hpp"

namespace {

using launch_test::command;

class detours_of_hosts : public launch_test::circle_of_hosts {
 protected:
  static launch_test::words job(const std::string& what) {
    return launch_test::run(
        {"-n", "3", "--host", hosts()},
        {std::string("--strata-networks=") + circle, "--strata-lost-after-ms=2000", what});
  }
  static void expect_node_2_lost(const std::string& what) {
    command c(job(what), from_hub());
    EXPECT_NE(c.wait(), 0);
    EXPECT_NE(c.out().find("node 2 is lost"), std::string::npos) << c.out() << c.err();
    EXPECT_EQ(c.processes_left(), 0);
  }
};

TEST_F(detours_of_hosts, go_around_a_connection_that_is_reset) {
  command c(job("resets"), from_hub());
  EXPECT_EQ(c.wait(), 0) << c.out() << c.err();
  EXPECT_NE(c.out().find("around\nok\n"), std::string::npos) << c.out() << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_F(detours_of_hosts, go_around_a_network_that_falls_silent) {
  command c(job("falls-silent"), from_hub());
  ASSERT_TRUE(c.wait_for_output("talks")) << c.out() << c.err();
  shell("ip -n " + address(1) + " link set cable4 down");
  EXPECT_EQ(c.wait(), 0) << c.out() << c.err();
  EXPECT_NE(c.out().find("around\nok\n"), std::string::npos) << c.out() << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_F(detours_of_hosts, end_at_a_node_that_is_killed) { expect_node_2_lost("kill"); }
TEST_F(detours_of_hosts, end_at_a_node_that_is_stopped) { expect_node_2_lost("stop"); }

}  // namespace
