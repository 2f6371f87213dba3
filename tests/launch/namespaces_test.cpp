// SPDX-License-Identifier: Apache-2.0
// The launcher on four hosts.
#include <csignal>
#include <filesystem>
#include <sstream>

#include "four_hosts.hpp"

namespace {

using launch_test::command;
using launch_test::four_hosts;
using launch_test::run;

TEST_F(four_hosts, every_node_reaches_every_other) {
  command c(run({"-n", "8", "--prefix", "--host", all_hosts()}, {"meet", "describe", "finish"}),
            from_hub());
  EXPECT_EQ(c.wait(), 0) << c.err();
  for (int node = 0; node < 8; ++node) {
    std::ostringstream line;
    line << "[" << node << "] node " << node << " met 8\n";
    EXPECT_NE(c.out().find(line.str()), std::string::npos) << c.out();
  }
  EXPECT_NE(c.out().find("node 7 of 8 host 3"), std::string::npos) << c.out();
  EXPECT_NE(c.out().find("at " + address(4)), std::string::npos) << c.out();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_F(four_hosts, a_node_here_listens_where_the_others_reach_it) {
  command c(run({"-n", "5", "--host", "localhost," + all_hosts()}, {"meet", "describe", "finish"}),
            from_hub());
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_NE(c.out().find("node 0 met 5\n"), std::string::npos) << c.out();
  EXPECT_NE(c.out().find("node 4 met 5\n"), std::string::npos) << c.out();
  EXPECT_NE(c.out().find("at " + address(100)), std::string::npos) << c.out();
}

TEST_F(four_hosts, a_lost_node_is_named_and_all_hosts_are_left_clean) {
  command c(run({"-n", "4", "--host", all_hosts()}, {"join", "@2:raise:9", "wait"}), from_hub());
  EXPECT_EQ(c.wait(), 137);
  EXPECT_EQ(c.err(), "strata run: node 2 on " + address(3) +
                         " was killed by signal 9 (SIGKILL); the job is stopped\n");
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_F(four_hosts, a_killed_launcher_leaves_nothing) {
  command c(run({"-n", "4", "--host", all_hosts()}, {"join", "@0:print:ready", "sleep"}),
            from_hub());
  ASSERT_TRUE(c.wait_for_output("ready\n"));
  c.signal(SIGKILL);
  EXPECT_EQ(c.wait(), 137);
  c.wait_for_no_process();
}

TEST_F(four_hosts, nodes_come_and_go) {
  std::string folder = testing::TempDir() + "strata-elastic-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  command::setting how = from_hub();
  how.variables.push_back("XDG_RUNTIME_DIR=" + folder);
  command c(run({"-n", "2", "--elastic", "--host", address(1) + "," + address(2)},
                {"report:10", "meet", "enter", "describe", "elastic"}),
            how);
  ASSERT_TRUE(c.wait_for_error_output("strata join "));
  ASSERT_TRUE(c.wait_for_error_output("\n"));
  const std::string job = c.err().substr(c.err().find("strata join ") + 12, 8);
  const auto ask = [&](const std::vector<std::string>& line) {
    command one(line, how);
    EXPECT_EQ(one.wait(), 0) << one.err();
    return one.out();
  };
  EXPECT_EQ(ask({"join", job, "--host", address(3), "-n", "2"}),
            "node 2 has joined job " + job + "\nnode 3 has joined job " + job + "\n");
  EXPECT_EQ(ask({"leave", job, "1"}), "node 1 has left job " + job + "\n");
  // Here there was none yet.
  EXPECT_EQ(ask({"join", job}), "node 4 has joined job " + job + "\n");
  c.signal(SIGUSR1);
  EXPECT_EQ(c.wait(), 0) << c.err();
  for (const std::string& line :
       {std::string("node 2 met 3\n"), std::string("node 3 met 4\n"), std::string("node 4 met 4\n"),
        "at " + address(3), std::string("node 4 of 5 host 3 "), "at " + address(100)}) {
    EXPECT_NE(c.out().find(line), std::string::npos) << line << c.out();
  }
  EXPECT_EQ(c.processes_left(), 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
