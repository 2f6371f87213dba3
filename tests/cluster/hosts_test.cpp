// SPDX-License-Identifier: Apache-2.0
// Jobs on four hosts of two nodes each: shared memory within a host, TCP between hosts; or UDP or
// UCX.
#include "../common/slow_builds.hpp"
#include "chain_of_hosts.hpp"

namespace {

using launch_test::command;
using launch_test::four_hosts;

class jobs_on : public four_hosts {
 protected:
  static void expect_ok(const std::string& what, const std::string& transport = "auto") {
    launch_test::expect_ok(
        launch_test::run({"-n", "8", "--transport", transport, "--host", all_hosts()}, {what}),
        from_hub());
  }
};

TEST_F(jobs_on, compute_with_tokens) { expect_ok("tokens"); }
TEST_F(jobs_on, move_blocks_before_they_signal) { expect_ok("blocks"); }
TEST_F(jobs_on, survive_floods) { expect_ok("flood"); }
TEST_F(jobs_on, bring_results_of_calls_home) { expect_ok("calls"); }
TEST_F(jobs_on, fail_and_go_on) { expect_ok("fiber-exceptions"); }

TEST_F(jobs_on, survive_floods_over_udp) { expect_ok("flood", "udp"); }

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

using launch_test::chain_of_hosts;

TEST_F(chain_of_hosts, spreads_tokens_and_blocks) {
  run("4", {"tokens"});
  run("4", {"blocks"});
  // Two nodes on each host: every second hop is shared memory.
  run("8", {"flood"});
}

TEST_F(chain_of_hosts, calls_and_hears_of_failures) {
  run("4", {"calls"});
  run("4", {"fiber-exceptions"});
}

TEST_F(chain_of_hosts, says_what_it_forwards) {
  command c(launch_test::run({"-n", "4", "--host", all_hosts()},
                             {all_networks, "--strata-stats", "blocks"}),
            from_hub());
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_NE(c.err().find("node 1 of 4, 2 by tcp, 1 by other nodes"), std::string::npos) << c.err();
  EXPECT_NE(c.err().find("; forwarded "), std::string::npos) << c.err();
}

TEST_F(chain_of_hosts, shows_its_routes) {
  command c({"info", "--routes", "-n", "4", "--host", all_hosts(), "--networks",
             "192.168.1.0/24,192.168.2.0/24,192.168.3.0/24"},
            from_hub());
  EXPECT_EQ(c.wait(), 0) << c.err();
  for (const char* const row : {"   0     1     1     1  tcp ", "   0     3     1     3  tcp ",
                                "   3     1     2     2  tcp "})
    EXPECT_NE(c.out().find(row), std::string::npos) << c.out();
  EXPECT_EQ(c.processes_left(), 0);
}

using launch_test::circle_of_hosts;

TEST_F(circle_of_hosts, routes_are_direct_where_networks_are_equal) {
  // Where all hosts are one machine that has other things to do, no network is like another.
  std::string all;
  for (int i = 0; i < 5 && all.find("\n   0     2     2     1  tcp ") == std::string::npos; ++i)
    all += table();
  EXPECT_NE(all.find("\n   0     2     2     1  tcp "), std::string::npos) << all;
}

TEST_F(circle_of_hosts, routes_go_around_a_slow_network) {
  make_slow(1, 3, "cable4");
  if (IsSkipped()) return;
  const std::string all = table();
  EXPECT_NE(all.find("\n   0     2     1     2  tcp "), std::string::npos) << all;
  for (const char* const what : {"tokens", "blocks", "calls"}) expect_ok(what);
}

// Two nodes that have a connection to each other, and say goodbye by a third.
TEST_F(circle_of_hosts, an_unused_connection_that_ends_is_no_loss) {
  make_slow(2, 3, "cable2");
  if (IsSkipped()) return;
  const int jobs =
      strata::test::thread_sanitizer ? 3 : 10;  // what it looks for is a race between processes
  for (int i = 0; i < jobs; ++i) expect_ok("tokens");
}

TEST_F(chain_of_hosts, hears_of_a_lost_gateway) {
  command c(launch_test::run({"-n", "4", "--host", all_hosts()}, {all_networks, "kill"}),
            from_hub());
  EXPECT_NE(c.wait(), 0);
  EXPECT_NE(c.out().find("caught: node 1 is lost"), std::string::npos) << c.out();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_F(chain_of_hosts, names_a_node_that_no_way_leads_to) {
  command c(launch_test::run({"-n", "4", "--host", all_hosts()},
                             {"--strata-networks=192.168.1.0/24,192.168.2.0/24", "tokens"}),
            from_hub());
  EXPECT_NE(c.wait(), 0);
  // The first that notices says so, and the job ends with it.
  EXPECT_NE(c.out().find("no way leads from node "), std::string::npos) << c.out();
  EXPECT_EQ(c.processes_left(), 0);
}

}  // namespace
