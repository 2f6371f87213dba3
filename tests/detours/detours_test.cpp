// SPDX-License-Identifier: Apache-2.0
// Jobs on several networks whose connections end, each on its own: nodes go on talking by another
// network or by others, and only who is reached by nobody is lost.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <utility>

#include "chain_of_hosts.hpp"
#include "rounds.hpp"

namespace {

using launch_test::command;

class several_networks : public launch_test::circle_of_hosts {
 protected:
  static launch_test::words job(const std::string& what, const std::string& networks,
                                const std::string& transport = "auto",
                                const std::string& lost_after_ms = "6000") {
    return launch_test::run(
        {"-n", "3", "--transport", transport, "--host", hosts()},
        {"--strata-networks=" + networks, "--strata-lost-after-ms=" + lost_after_ms, what});
  }
  // With a second cable between the first and the last.
  static constexpr const char* both = "192.168.1.0/24,192.168.4.0/24,192.168.6.0/24";
  static void expect_goes_on(command& c) {
    EXPECT_EQ(c.wait(), 0) << c.out() << c.err();
    EXPECT_NE(c.out().find("goes on\nok\n"), std::string::npos) << c.out() << c.err();
    EXPECT_EQ(c.processes_left(), 0);
  }
  // Which is cable4 or the other one: the job says.
  static void expect_goes_on_without_its_cable(command& c, const std::string& other) {
    ASSERT_TRUE(c.wait_for_output("talks by cable") && c.wait_for_output("\n"))
        << c.out() << c.err();
    const std::string cable = launch_test::contains(c.out(), "cable4") ? "cable4" : other;
    shell("ip -n " + address(1) + " link set " + cable + " down");
    expect_goes_on(c);
  }
  // Each of the two cables in turn, after the other one has been put back: what is not made again
  // is missing the second time.
  static void expect_cables_to_come_back(command& c) {
    for (int round = 0; round < detours_test::rounds_of_cables; ++round) {
      const std::string now = " round " + std::to_string(round) + "\n";
      ASSERT_TRUE(c.wait_for_output(" carries" + now)) << c.out() << c.err();
      const std::string cable =
          launch_test::contains(c.out(), "cable4 carries" + now) ? "cable4" : "cable6";
      const std::string link = "ip -n " + address(1) + " link set " + cable;
      ASSERT_TRUE(shell(link + " down"));
      ASSERT_TRUE(c.wait_for_output("the other one carries" + now)) << c.out() << c.err();
      ASSERT_TRUE(shell(link + " up"));
      ASSERT_TRUE(c.wait_for_output("both are there in" + now)) << c.out() << c.err();
    }
    expect_goes_on(c);
  }
  // As by a firewall: what the last one says to the first over it is never answered.
  static void close(const std::string& cable) {
    ASSERT_TRUE(shell("ip -n " + address(1) + " route add unreachable 192.168." + cable.substr(5) +
                      ".3/32"));
  }
  static void open(const std::string& cable) {
    ASSERT_TRUE(shell("ip -n " + address(1) + " route del unreachable 192.168." + cable.substr(5) +
                      ".3/32"));
  }
  static void expect_told(const command& c, const std::string& cable,
                          const std::string& kind = "") {
    const std::string words = "strata: node 2 cannot connect to node 0 over " + kind + "192.168." +
                              cable.substr(5) + ".0/24";
    EXPECT_TRUE(launch_test::contains(c.err(), words)) << c.err();
    EXPECT_TRUE(launch_test::contains(c.err(), "; messages go other ways\n")) << c.err();
  }
  static void expect_node_2_lost(const launch_test::words& line) {
    command c(line, from_hub());
    EXPECT_NE(c.wait(), 0);
    EXPECT_NE(c.out().find("node 2 is lost"), std::string::npos) << c.out() << c.err();
    EXPECT_EQ(c.processes_left(), 0);
  }
  // Which does not end by itself, and is not waited for.
  static void expect_node_2_lost_and_stopped(const launch_test::words& line) {
    command c(line, from_hub());
    EXPECT_TRUE(c.wait_for_output("node 2 is lost")) << c.out() << c.err();
    c.signal(SIGINT);
    EXPECT_NE(c.wait(), 0);
    EXPECT_EQ(c.processes_left(), 0);
  }
};

// Over TCP: UDP has no connections.
TEST_F(several_networks, are_gone_around_when_a_connection_is_reset) {
  command c(job("resets", circle), from_hub());
  expect_goes_on(c);
}

TEST_F(several_networks, carry_on_when_one_of_two_connections_is_reset) {
  lay(1, 3, "cable6");
  if (IsSkipped()) return;
  command c(job("resets-one", both), from_hub());
  expect_goes_on(c);
}

TEST_F(several_networks, take_back_connections_over_cables_that_return) {
  if (strata::test::address_sanitizer) GTEST_SKIP() << "the other sanitizer's turn";
  lay(1, 3, "cable6");
  if (IsSkipped()) return;
  command c(job("cables-return", both), from_hub());
  expect_cables_to_come_back(c);
}

class detours_of_hosts : public launch_test::by_transport<several_networks> {
 protected:
  static launch_test::words job(const std::string& what,
                                const std::string& lost_after_ms = "6000") {
    return several_networks::job(what, circle, GetParam(), lost_after_ms);
  }
};
INSTANTIATE_TEST_SUITE_P(networks, detours_of_hosts, launch_test::transports_over_networks,
                         launch_test::name_of_transport);

// As above, where two nodes share one network, and a third one joins them.
TEST_P(detours_of_hosts, end_when_a_cable_returns) {
  command c(job("ways-return"), from_hub());
  const auto set = [](const std::string& cable, const std::string& how) {
    return shell("ip -n " + address(1) + " link set " + cable + " " + how);
  };
  ASSERT_TRUE(c.wait_for_output(" carries round 0\n")) << c.out() << c.err();
  const bool is_4 = launch_test::contains(c.out(), "cable4 carries");
  const std::string first = is_4 ? "cable4" : "cable1", second = is_4 ? "cable1" : "cable4";
  ASSERT_TRUE(set(first, "down"));
  ASSERT_TRUE(c.wait_for_output("the other one carries round 0")) << c.out() << c.err();
  ASSERT_TRUE(set(first, "up"));
  ASSERT_TRUE(c.wait_for_output("both are there in round 0")) << c.out() << c.err();
  ASSERT_TRUE(set(second, "down"));
  expect_goes_on(c);
}

TEST_P(detours_of_hosts, go_around_a_network_that_falls_silent) {
  command c(job("falls-silent"), from_hub());
  expect_goes_on_without_its_cable(c, "cable1");
}

TEST_P(detours_of_hosts, are_not_needed_around_a_network_that_was_closed_before) {
  close("cable4");
  command c(job("talks"), from_hub());
  expect_goes_on(c);
  expect_told(c, "cable4");
}

TEST_P(detours_of_hosts, end_at_a_node_that_is_killed) { expect_node_2_lost(job("kill")); }
TEST_P(detours_of_hosts, end_at_a_node_that_is_stopped) {
  expect_node_2_lost_and_stopped(job("stop"));
}

TEST_P(detours_of_hosts, are_not_taken_around_a_node_that_is_stopped_for_a_while) {
  command c(job("stop-for-a-while", "12000"), from_hub());
  expect_goes_on(c);
}

// The first and the last share two, and no other way joins them.
class two_cables : public launch_test::by_transport<several_networks> {
 protected:
  void SetUp() override {
    several_networks::SetUp();
    if (!IsSkipped()) lay(1, 3, "cable6");
  }
  static launch_test::words job(const std::string& what) {
    return several_networks::job(what, both, GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(networks, two_cables, launch_test::transports_over_networks,
                         launch_test::name_of_transport);

TEST_P(two_cables, one_goes_on_when_the_other_falls_silent) {
  command c(job("one-falls-silent"), from_hub());
  expect_goes_on_without_its_cable(c, "cable6");
}

TEST_P(two_cables, that_which_is_much_better_is_used) {
  make_slow(1, 3, "cable4");
  if (IsSkipped()) return;
  command c(job("uses-the-better-one"), from_hub());
  expect_goes_on(c);
}

TEST_P(two_cables, one_is_enough_when_the_other_is_closed) {
  close("cable6");
  command c(job("talks"), from_hub());
  expect_goes_on(c);
  expect_told(c, "cable6");
}

TEST_P(two_cables, the_second_is_enough_when_the_first_is_closed) {
  close("cable4");
  command c(job("talks"), from_hub());
  expect_goes_on(c);
  expect_told(c, "cable4");
}

TEST_P(two_cables, join_nobody_when_both_are_closed) {
  close("cable4");
  close("cable6");
  command c(job("talks"), from_hub());
  EXPECT_NE(c.wait(), 0);
  for (const char* const words :
       {"no way leads from node", "nodes 0 and 2 could not connect over 192.168.4.0/24"})
    EXPECT_TRUE(launch_test::contains(c.out() + c.err(), words)) << c.out() << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_P(two_cables, carry_nothing_to_a_node_that_is_killed) { expect_node_2_lost(job("kill")); }

// The same over networks of different kinds: that of the first two, and those of the two cables
// between the first and the last.
class cables_that_differ : public several_networks {
 protected:
  void SetUp() override {
    several_networks::SetUp();
    if (!IsSkipped()) lay(1, 3, "cable6");
    if (!IsSkipped()) wait_until_cables_run(3);
  }
  static launch_test::words job(const launch_test::three_kinds& k, const std::string& what,
                                const launch_test::words& more = {}) {
    launch_test::words all{std::string("--strata-networks=") + k.first + ":192.168.1.0/24," +
                               k.second + ":192.168.4.0/24," + k.third + ":192.168.6.0/24",
                           "--strata-lost-after-ms=6000"};
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(what);
    return launch_test::run({"-n", "3", "--host", hosts()}, all);
  }
};

// TCP and UDP, each of which has to be made again for the next cut.
TEST_F(cables_that_differ, take_back_connections_of_either_kind) {
  if (strata::test::thread_sanitizer) GTEST_SKIP() << "the other sanitizer's turn";
  command c(job({"tcp", "udp", "tcp"}, "kinds-return"), from_hub());
  expect_cables_to_come_back(c);
}

class cables_of_kinds : public cables_that_differ,
                        public testing::WithParamInterface<launch_test::three_kinds> {
 protected:
  static launch_test::words job(const std::string& what) {
    return cables_that_differ::job(GetParam(), what);
  }
};
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(networks, cables_of_kinds,
                         testing::Values(launch_test::three_kinds{"tcp", "ucx", "tcp"},
                                         launch_test::three_kinds{"ucx", "tcp", "udp"}),
                         launch_test::name_of_kinds);
#else
INSTANTIATE_TEST_SUITE_P(networks, cables_of_kinds,
                         testing::Values(launch_test::three_kinds{"udp", "tcp", "udp"}),
                         launch_test::name_of_kinds);
#endif

// One is measured to be no worse than the other, and either may be used: the job says.
TEST_P(cables_of_kinds, one_goes_on_when_the_other_falls_silent) {
  command c(job("one-falls-silent"), from_hub());
  expect_goes_on_without_its_cable(c, "cable6");
}

#if defined(STRATA_HAS_UCX)
// Blocks that UCX moves from memory to memory end in the middle, and go on in pieces: the program
// sees to it that one to node 0 did. By then that takes seconds, and the end meets one, of which a
// quarter has gone.
TEST_F(cables_that_differ, one_goes_on_with_transfers_that_the_other_has_begun) {
  make_slow(1, 3, "cable6");
  if (IsSkipped()) return;
  command c(job({"tcp", "ucx", "tcp"}, "ends-transfers", {"--strata-rendezvous=always"}),
            from_hub());
  ASSERT_TRUE(c.wait_for_output("talks by cable4")) << c.out() << c.err();
  make_fast(1, 3, "cable6");
  make_slow_from(3, "cable4");
  ASSERT_TRUE(
      shell("ip netns exec " + address(3) +
            " sh -c 'n=0; at=/sys/class/net/cable4/statistics/tx_bytes; begin=$(cat $at) && "
            "while [ $(($(cat $at) - begin)) -lt 200000 ]; do sleep 0.02; n=$((n + 1)); "
            "[ $n -lt 3000 ] || exit 1; done'"));
  shell("ip -n " + address(1) + " link set cable4 down");
  expect_goes_on(c);
}
#endif

TEST_P(cables_of_kinds, that_which_is_much_better_is_used) {
  make_slow(1, 3, "cable4");
  if (IsSkipped()) return;
  command c(job("uses-the-better-one"), from_hub());
  expect_goes_on(c);
}

TEST_P(cables_of_kinds, one_is_enough_when_the_other_is_closed) {
  for (const auto& [cable, kind] :
       {std::pair{"cable4", GetParam().second}, std::pair{"cable6", GetParam().third}}) {
    close(cable);
    command c(job("talks"), from_hub());
    expect_goes_on(c);
    expect_told(c, cable, std::string(kind) + ":");
    open(cable);
  }
}

TEST_P(cables_of_kinds, carry_nothing_to_a_node_that_is_killed) { expect_node_2_lost(job("kill")); }

}  // namespace
