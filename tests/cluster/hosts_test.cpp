// SPDX-License-Identifier: Apache-2.0
// Jobs on four hosts of two nodes each: shared memory within a host, TCP between hosts; or UDP or
// UCX, between hosts or for all.
#include <csignal>
#include <regex>
#include <utility>

#include "../common/sampled.hpp"
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

// No neighbours in the ring of heartbeats, and both live. The kernel would wait for a quarter of an
// hour.
TEST_F(jobs_on, hear_that_two_others_reach_each_other_no_more) {
  command c(launch_test::run({"-n", "4", "--transport", "tcp", "--host", all_hosts()},
                             {"--strata-lost-after-ms=6000", "talk-across"}),
            from_hub());
  ASSERT_TRUE(c.wait_for_output("talking")) << c.err();
  for (const auto& [host, other] : {std::pair(2, 4), std::pair(4, 2)})
    ASSERT_TRUE(
        launch_test::shell("ip -n " + address(host) + " route add blackhole " + address(other)));
  EXPECT_EQ(c.wait(), 1) << c.err();
  EXPECT_TRUE(std::regex_search(c.out(), std::regex("caught: node [13] is lost: has acknowledged "
                                                    "nothing for 6000 ms")))
      << c.out() << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

// Two nodes on each of two hosts: shared memory within a host, another transport between hosts.
class two_on_two : public four_hosts, public testing::WithParamInterface<const char*> {
 protected:
  // Of the other one.
  static std::string name() { return std::string(GetParam()).substr(sizeof "shm+" - 1); }
  static launch_test::words flags() {
    return {"-n", "4", "--transport", GetParam(), "--host", address(1) + "," + address(2)};
  }
};
constexpr auto name_of_pair = [](const auto& p) {
  return std::string(p.param).substr(sizeof "shm+" - 1);
};
INSTANTIATE_TEST_SUITE_P(sockets, two_on_two, testing::Values("shm+tcp", "shm+udp"), name_of_pair);
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(ucx, two_on_two, testing::Values("shm+ucx"), name_of_pair);
#endif

TEST_P(two_on_two, compute) {
  for (const char* const what : {"tokens", "blocks", "calls", "fiber-exceptions", "mailboxes"})
    launch_test::expect_ok(launch_test::run(flags(), {what}), from_hub());
}

// Each node sends the same to each other one: to one through memory, to two by the other transport.
TEST_P(two_on_two, send_by_memory_within_a_host_alone) {
  command c(launch_test::run(flags(), {"--strata-stats", "flood"}), from_hub());
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_EQ(c.out(), "ok\n");
  const std::string err = c.err();
  const unsigned each = strata::test::scaled(20'000U, 2'000U);
  for (unsigned node = 0; node < 4; ++node) {
    const std::string line =
        "strata: node " + std::to_string(node) + " of 4, 1 by shm, 2 by " + name() + "\n";
    const std::size_t at = err.find(line);
    ASSERT_NE(at, std::string::npos) << line << err;
    const auto sent_by = [&](const std::string& transport) {
      std::smatch number;
      const std::string rest = err.substr(at, err.find("strata: node ", at + 1) - at);
      EXPECT_TRUE(std::regex_search(rest, number,
                                    std::regex("  by " + transport + ": sent ([0-9]+) messages")))
          << rest;
      return number.size() == 2 ? std::stoul(number[1]) : 0;
    };
    EXPECT_GE(sent_by("shm"), each) << err;
    EXPECT_GE(sent_by(name()), 2 * each) << err;
  }
  EXPECT_EQ(c.processes_left(), 0);
}

// A thread that finds each message of a conversation at once never does anything else, and keeps
// the receivers asleep: so it has to look at the other transports, too. If it does not, the job
// goes on until the time of this test is over.
TEST_P(two_on_two, hear_the_other_host_during_a_conversation_within_theirs) {
  launch_test::words one_worker = flags();
  one_worker.insert(one_worker.end(), {"--workers", "1"});
  launch_test::expect_ok(launch_test::run(one_worker, {"converse-nearby"}), from_hub());
}

TEST_P(two_on_two, show_their_routes) {
  launch_test::words all{"info", "--routes"};
  const launch_test::words more = flags();
  all.insert(all.end(), more.begin(), more.end());
  command c(all, from_hub());
  EXPECT_EQ(c.wait(), 0) << c.err();
  for (const std::string& row :
       {std::string("   0     1     1     1  shm "), std::string("   3     2     2     1  shm "),
        "   0     2     2     1  " + name() + " ", "   3     1     1     1  " + name() + " "})
    EXPECT_NE(c.out().find(row), std::string::npos) << row << "\n" << c.out();
}

TEST_P(two_on_two, hear_of_a_killed_node) {
  command c(launch_test::run(flags(), {"kill"}), from_hub());
  EXPECT_NE(c.wait(), 0);
  EXPECT_NE(c.out().find("caught: node 1 is lost"), std::string::npos) << c.out();
  EXPECT_EQ(c.processes_left(), 0);
}

using launch_test::chain_of_hosts;
using launch_test::circle_of_hosts;

// Node 0 floods node 3, and node 1 between them dies. Who sends or waits, wherever it is, hears of
// that; and what a sender was told has been received.
void expect_gateway_lost_in_flood(command& c) {
  EXPECT_EQ(c.wait(), 128 + SIGKILL) << c.err();
  EXPECT_FALSE(launch_test::contains(c.out(), "not ok")) << c.out();
  EXPECT_TRUE(launch_test::contains(c.out(), "caught: node 1 is lost")) << c.out();
  const auto count = [&](const std::string& who) {
    std::smatch found;
    const std::string all = c.out();
    EXPECT_TRUE(std::regex_search(all, found, std::regex(who + " ([0-9]+): node 1 is lost")))
        << who << "\n"
        << all << c.err();
    return found.size() == 2 ? std::stoul(found[1]) : 0;
  };
  const unsigned long sent = count("node 0 has sent"), heard = count("node 0 has heard"),
                      received = count("node 3 has received");
  EXPECT_EQ(count("node 2 has received"), 0U);
  EXPECT_GE(sent, 500U);
  EXPECT_GE(received, sent) << "what was acknowledged";
  EXPECT_GE(received, heard) << "what was answered";
  EXPECT_EQ(c.processes_left(), 0);
}

// Over networks that not all share: every second hop is through memory.
TEST_F(chain_of_hosts, forwards_over_udp_between_nodes_that_share_memory) {
  run("8", "flood", "shm+udp");
  run("8", "calls", "shm+udp");
}

class chain_by : public launch_test::by_transport<chain_of_hosts> {};
class circle_by : public launch_test::by_transport<circle_of_hosts> {
 protected:
  // In one of five tables: where all hosts are one machine that has other things to do, no network
  // is like another, nor like itself.
  static void expect_row(const std::string& beginning) {
    const std::string row = "\n" + beginning + name() + " ";
    std::string all;
    for (int i = 0; i < 5 && !launch_test::contains(all, row); ++i) all += table(GetParam());
    EXPECT_TRUE(launch_test::contains(all, row)) << all;
  }
};
INSTANTIATE_TEST_SUITE_P(networks, chain_by, launch_test::transports_over_networks,
                         launch_test::name_of_transport);
INSTANTIATE_TEST_SUITE_P(networks, circle_by, launch_test::transports_over_networks,
                         launch_test::name_of_transport);

TEST_P(chain_by, spreads_tokens_and_blocks) {
  run("4", "tokens", GetParam());
  run("4", "blocks", GetParam());
  // Two nodes on each host: every second hop is within it.
  run("8", "flood", GetParam());
}

TEST_P(chain_by, calls_and_hears_of_failures) {
  run("4", "calls", GetParam());
  run("4", "fiber-exceptions", GetParam());
}

TEST_P(chain_by, says_what_it_forwards) {
  command c(job("4", {all_networks, "--strata-stats", "blocks"}), from_hub());
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_NE(c.err().find("node 1 of 4, 2 by " + name() + ", 1 by other nodes"), std::string::npos)
      << c.err();
  EXPECT_NE(c.err().find("; forwarded "), std::string::npos) << c.err();
}

TEST_P(chain_by, shows_its_routes) {
  command c({"info", "--routes", "-n", "4", "--transport", GetParam(), "--host", all_hosts(),
             "--networks", "192.168.1.0/24,192.168.2.0/24,192.168.3.0/24"},
            from_hub());
  EXPECT_EQ(c.wait(), 0) << c.err();
  for (const char* const row :
       {"   0     1     1     1  ", "   0     3     1     3  ", "   3     1     2     2  "})
    EXPECT_NE(c.out().find(row + name() + " "), std::string::npos) << c.out();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_P(chain_by, hears_of_a_lost_gateway) {
  command c(job("4", {all_networks, "kill"}), from_hub());
  EXPECT_NE(c.wait(), 0);
  EXPECT_NE(c.out().find("caught: node 1 is lost"), std::string::npos) << c.out();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_P(chain_by, loses_a_gateway_with_messages_in_it) {
  command c(job("4", {all_networks, "kill-gateway"}), from_hub());
  expect_gateway_lost_in_flood(c);
}

TEST_P(chain_by, names_a_node_that_no_way_leads_to) {
  command c(job("4", {"--strata-networks=192.168.1.0/24,192.168.2.0/24", "tokens"}), from_hub());
  EXPECT_NE(c.wait(), 0);
  // The first that notices says so, and the job ends with it.
  EXPECT_NE(c.out().find("no way leads from node "), std::string::npos) << c.out();
  EXPECT_EQ(c.processes_left(), 0);
}

// A chain whose networks are of different kinds.
class chain_of_kinds : public chain_of_hosts,
                       public testing::WithParamInterface<launch_test::three_kinds> {
 protected:
  void SetUp() override {
    chain_of_hosts::SetUp();
    if (!IsSkipped()) wait_until_cables_run(4);
  }
  static std::string networks() {
    return networks_of_kinds(GetParam().first, GetParam().second, GetParam().third);
  }
  static launch_test::words job(const std::string& nodes, const launch_test::words& actions) {
    launch_test::words all{networks()};
    all.insert(all.end(), actions.begin(), actions.end());
    return launch_test::run({"-n", nodes, "--host", all_hosts()}, all);
  }
};
INSTANTIATE_TEST_SUITE_P(networks, chain_of_kinds, launch_test::different_kinds,
                         launch_test::name_of_kinds);

TEST_P(chain_of_kinds, spreads_tokens_calls_and_blocks) {
  for (const char* const what : {"tokens", "blocks", "calls", "fiber-exceptions", "mailboxes"})
    launch_test::expect_ok(job("4", {what}), from_hub());
  // Every second hop is through memory.
  launch_test::expect_ok(job("8", {"flood"}), from_hub());
}

TEST_P(chain_of_kinds, counts_what_goes_by_each) {
  command c(job("4", {"--strata-stats", "blocks"}), from_hub());
  EXPECT_EQ(c.wait(), 0) << c.err();
  const auto said_of = [&](unsigned node) {
    const std::string err = c.err();
    const std::size_t at = err.find("strata: node " + std::to_string(node) + " of 4, ");
    if (at == std::string::npos) return std::string();
    return err.substr(at, err.find("strata: node ", at + 1) - at);
  };
  const std::string at_first = said_of(1), at_second = said_of(2);
  for (const auto& [text, kinds] :
       {std::pair{at_first, std::pair{GetParam().first, GetParam().second}},
        std::pair{at_second, std::pair{GetParam().second, GetParam().third}}}) {
    for (const char* const k : {kinds.first, kinds.second}) {
      EXPECT_TRUE(launch_test::contains(text, std::string(", 1 by ") + k)) << text;
      EXPECT_TRUE(launch_test::contains(text, std::string("  by ") + k + ": sent ")) << text;
    }
    EXPECT_TRUE(launch_test::contains(text, ", 1 by other nodes")) << text;
  }
  EXPECT_TRUE(launch_test::contains(c.err(), "; forwarded ")) << c.err();
}

TEST_P(chain_of_kinds, shows_the_kind_of_each_link) {
  command c({"info", "--routes", "-n", "4", "--host", all_hosts(), "--networks",
             networks().substr(sizeof "--strata-networks=" - 1)},
            from_hub());
  EXPECT_EQ(c.wait(), 0) << c.err();
  const launch_test::three_kinds k = GetParam();
  for (const std::string& row : {"   0     1     1     1  " + std::string(k.first),
                                 "   0     3     1     3  " + std::string(k.first),
                                 "   1     2     2     1  " + std::string(k.second),
                                 "   2     1     1     1  " + std::string(k.second),
                                 "   2     3     3     1  " + std::string(k.third),
                                 "   3     0     2     3  " + std::string(k.third)})
    EXPECT_TRUE(launch_test::contains(c.out(), row + " ")) << row << "\n" << c.out();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_P(chain_of_kinds, hears_of_a_lost_gateway) {
  command c(job("4", {"kill"}), from_hub());
  EXPECT_NE(c.wait(), 0);
  EXPECT_NE(c.out().find("caught: node 1 is lost"), std::string::npos) << c.out() << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_P(chain_of_kinds, loses_a_gateway_with_messages_in_it) {
  command c(job("4", {"kill-gateway"}), from_hub());
  expect_gateway_lost_in_flood(c);
}

TEST_P(circle_by, routes_are_direct_where_networks_are_equal) {
  expect_row("   0     2     2     1  ");
}

TEST_P(circle_by, routes_go_around_a_slow_network) {
  make_slow(1, 3, "cable4");
  if (IsSkipped()) return;
  expect_row("   0     2     1     2  ");
  for (const char* const what : {"tokens", "blocks", "calls"}) expect_ok(what, GetParam());
}

// Two nodes that have a connection to each other, and say goodbye by a third.
TEST_P(circle_by, an_unused_connection_that_ends_is_no_loss) {
  make_slow(2, 3, "cable2");
  if (IsSkipped()) return;
  const int jobs = strata::test::sampled(10, 3);  // it looks for a race between processes
  for (int i = 0; i < jobs; ++i) expect_ok("tokens", GetParam());
}

}  // namespace
