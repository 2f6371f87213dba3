// SPDX-License-Identifier: Apache-2.0
// Jobs whose nodes find their networks themselves.
#include <string>
#include <vector>

#include "../common/sampled.hpp"
#include "chain_of_hosts.hpp"

namespace {

using launch_test::command;
using launch_test::contains;

class unnamed_by : public launch_test::by_transport<launch_test::unnamed_networks> {};
INSTANTIATE_TEST_SUITE_P(networks, unnamed_by, launch_test::transports_over_networks,
                         launch_test::name_of_transport);

// With sanitizers one: what goes by networks that were named is the same (chain_by).
const auto jobs_by_found_networks =
    strata::test::sampled<std::vector<std::string>>({"tokens", "blocks", "calls"}, {"calls"});

// On all of them the same, as the bridges of containers are; on all of them another one, which
// nothing tells from a network but that nobody answers there; and one that nobody else is on.
TEST_P(unnamed_by, hosts_with_bridges_of_their_own_share_none_of_these) {
  for (int h = 1; h <= 3; ++h) {
    put_aside(h, "docker0", "172.17.0.1/16");
    put_aside(h, "virbr0", "192.168.122." + std::to_string(h) + "/24");
    put_aside(h, "own0", "192.168.20" + std::to_string(h) + ".1/24");
    if (IsSkipped()) return;
  }
  wait_until_all_run();
  // Hosts 1 and 3 share the bridge and nothing else, and so need no name for it.
  const launch_test::words two{"-n",       "2",      "--transport",
                               GetParam(), "--host", address(1) + "," + address(3)};
  launch_test::words line{"info", "--routes", "--networks", "auto"};
  line.insert(line.end(), two.begin(), two.end());
  command c(line, from_hub());
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_EQ(c.err(), "");
  EXPECT_TRUE(contains(c.out(), "   0     1     1     1  " + name() + " ")) << c.out();
  EXPECT_FALSE(contains(c.out(), "/24")) << "named\n" << c.out();
  // Hosts 1 to 3 share cables, too.
  const std::string all = table(3, GetParam());
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      if (from == to) continue;
      EXPECT_TRUE(contains(row(all, from, to), "/24")) << from << ' ' << to << '\n' << all;
    }
  }
  for (const char* const trap : {"172.17.", "192.168.122.", "192.168.20"})
    EXPECT_FALSE(contains(all, trap)) << all;
  for (const std::string& what : jobs_by_found_networks) expect_ok(3, what, GetParam());
}

TEST_P(unnamed_by, the_quicker_of_two_networks_is_used) {
  make_slow_at(1, "eth0");
  make_slow_at(2, "eth0");
  if (IsSkipped()) return;
  const std::string all = table(2, GetParam());
  for (const std::string& one : {row(all, 0, 1), row(all, 1, 0)}) {
    EXPECT_TRUE(contains(one, "  192.168.1.0/24")) << all;
    EXPECT_FALSE(contains(one, " - ")) << "measured\n" << all;
  }
  expect_ok(2, "tokens", GetParam());
}

TEST_P(unnamed_by, the_quicker_of_two_networks_is_used_whichever_it_is) {
  make_slow_at(1, "cable1");
  make_slow_at(2, "cable1");
  if (IsSkipped()) return;
  const std::string all = table(2, GetParam());
  for (const std::string& one : {row(all, 0, 1), row(all, 1, 0)}) {
    EXPECT_TRUE(contains(one, "  " + of_bridge())) << all;
    EXPECT_FALSE(contains(one, " - ")) << "measured\n" << all;
  }
}

// The bridge is on all of them, and joins none.
TEST_P(unnamed_by, hosts_in_a_row_find_those_between) {
  part_the_bridge();
  if (IsSkipped()) return;
  const std::string all = table(4, GetParam());
  for (const char* const start :
       {"   0     1     1     1  ", "   0     3     1     3  ", "   3     1     2     2  "})
    EXPECT_TRUE(contains(all, start + name() + " ")) << all;
  EXPECT_TRUE(contains(row(all, 0, 3), "  192.168.1.0/24")) << all;
  EXPECT_TRUE(contains(row(all, 3, 0), "  192.168.3.0/24")) << all;
  for (const std::string& what : jobs_by_found_networks) expect_ok(4, what, GetParam());
}

// Two nodes on each host, of which one tries the networks for both.
TEST_P(unnamed_by, hosts_in_a_row_have_several_nodes) {
  part_the_bridge();
  if (IsSkipped()) return;
  launch_test::expect_ok(
      launch_test::run({"-n", "8", "--transport", GetParam(), "--host", all_hosts()},
                       {"--strata-networks=auto", "flood"}),
      from_hub());
}

// Their addresses are on no network that the system knows of: it knows no way there, either.
TEST_P(unnamed_by, hosts_in_a_row_need_no_network_of_their_addresses) {
  for (int h = 1; h <= 4; ++h) {
    if (!shell("ip -n " + address(h) + " addr flush dev eth0") ||
        !shell("ip -n " + address(h) + " addr add " + address(h) + "/32 dev eth0"))
      GTEST_SKIP() << "this system does not let us change addresses";
  }
  const std::string all = table(4, GetParam());
  EXPECT_TRUE(contains(row(all, 0, 3), "  192.168.1.0/24")) << all;
  EXPECT_TRUE(contains(row(all, 1, 3), "  192.168.2.0/24")) << all;
  expect_ok(4, "tokens", GetParam());
}

// Without the network of the first two, the first one has none at all.
TEST_P(unnamed_by, a_host_that_nobody_shares_anything_with_ends_the_job) {
  part_the_bridge();
  if (IsSkipped()) return;
  ASSERT_TRUE(shell("ip -n " + address(1) + " link set cable1 down"));
  command c(launch_test::run(flags(3, GetParam()), {"--strata-networks=auto", "tokens"}),
            from_hub());
  EXPECT_NE(c.wait(), 0);
  EXPECT_TRUE(contains(c.out() + c.err(), "no way leads from node ")) << c.out() << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_P(unnamed_by, a_lost_gateway_that_was_found_is_named) {
  part_the_bridge();
  if (IsSkipped()) return;
  command c(launch_test::run(flags(4, GetParam()), {"--strata-networks=auto", "kill"}), from_hub());
  EXPECT_NE(c.wait(), 0);
  EXPECT_TRUE(contains(c.out(), "caught: node 1 is lost")) << c.out() << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

#if defined(STRATA_HAS_UCX)
class unnamed_over_ucx : public launch_test::unnamed_networks {};

TEST_F(unnamed_over_ucx, hosts_in_a_row_find_those_between) {
  part_the_bridge();
  if (IsSkipped()) return;
  const std::string all = table(4, "ucx");
  EXPECT_TRUE(contains(all, "   0     3     1     3  ucx ")) << all;
  EXPECT_TRUE(contains(row(all, 0, 3), "  192.168.1.0/24")) << all;
  expect_ok(4, "tokens", "ucx");
}
#endif

// There is nothing to find, and nothing is listened to but the loopback interface.
TEST(unnamed_networks_of_one_host, are_none) {
  launch_test::expect_ok(launch_test::run({"-n", "2"}, {"--strata-networks=auto", "tokens"}));
  launch_test::expect_ok(
      launch_test::run({"-n", "2", "--transport", "tcp"}, {"--strata-networks=auto", "tokens"}));
  command c({"info", "--routes", "--networks", "auto"});
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_FALSE(contains(c.out(), "/24")) << "named\n" << c.out();
}

TEST(unnamed_networks_of_one_host, are_no_part_of_a_list) {
  for (const char* const list : {"auto,10.1.0.0/16", "10.1.0.0/16,auto", "tcp:auto", "autos"}) {
    command c({"info", "--routes", "--networks", list});
    EXPECT_EQ(c.wait(), 2) << list;
    EXPECT_TRUE(contains(c.err(), "--networks: ")) << c.err();
    EXPECT_EQ(launch_test::count_lines(c.err()), 1U) << c.err();
  }
}

}  // namespace
