// SPDX-License-Identifier: Apache-2.0
// Nodes that come from other hosts, and from hosts which not all members share a network with.
#include <regex>

#include "chain_of_hosts.hpp"
#include "elastic_job.hpp"

namespace {

using launch_test::chain_of_hosts;
using launch_test::circle_of_hosts;
using launch_test::elastic_job;

// Node 0 is alone: one host has no network with it, the other one does.
void expect_refused_without_a_way(elastic_job job, const std::string& far,
                                  const std::string& near) {
  job.wait_for("listens");
  const std::string why = job.join_in_vain({"--host", far});
  EXPECT_NE(why.find("node 1"), std::string::npos) << why;
  job.join({"--host", near});
  job.wait_for("heard");
  job.leave("2");
  job.expect_ok();
}

class comers_by : public launch_test::by_transport<chain_of_hosts> {
 protected:
  static elastic_job begin(const std::string& nodes, const std::string& what,
                           const std::string& hosts) {
    return {nodes,          what, {"--host", hosts, "--transport", GetParam()},
            {all_networks}, {},   from_hub()};
  }
  static void expect_needed(const elastic_job& job, const std::string& gateway) {
    const std::string why = job.leave_in_vain(gateway);
    EXPECT_NE(why.find("cannot leave: nodes that share no network reach each other by it"),
              std::string::npos)
        << why;
  }
};

TEST_P(comers_by, a_comer_is_reached_by_a_gateway_that_stays_for_it) {
  elastic_job job = begin("2", "far", address(1) + "," + address(2));
  job.wait_for("listens");
  job.join({"--host", address(3)});
  job.wait_for("heard");
  expect_needed(job, "1");
  job.leave("2");
  job.wait_for("gone");
  // Nobody is reached by it any more.
  job.leave("1");
  job.expect_ok();
}

TEST_P(comers_by, a_comer_forwards_to_who_comes_after_it) {
  elastic_job job = begin("2", "farther", address(1) + "," + address(2));
  job.wait_for("listens");
  job.join({"--host", address(3)});
  job.join({"--host", address(4)});
  job.wait_for("heard");
  expect_needed(job, "2");
  for (const char* const node : {"3", "2", "1"}) job.leave(node);
  job.expect_ok();
}

TEST_P(comers_by, a_comer_that_no_way_leads_to_is_refused) {
  expect_refused_without_a_way(begin("1", "greetings", address(1)), address(3), address(2));
}

// The same where each network is of another kind.
class comers_over_kinds : public chain_of_hosts,
                          public testing::WithParamInterface<launch_test::three_kinds> {
 protected:
  void SetUp() override {
    chain_of_hosts::SetUp();
    if (!IsSkipped()) wait_until_cables_run(4);
  }
  static elastic_job begin(const std::string& nodes, const std::string& what,
                           const std::string& hosts) {
    const launch_test::three_kinds k = GetParam();
    return {nodes, what,      {"--host", hosts}, {networks_of_kinds(k.first, k.second, k.third)},
            {},    from_hub()};
  }
};
INSTANTIATE_TEST_SUITE_P(networks, comers_over_kinds, launch_test::different_kinds,
                         launch_test::name_of_kinds);

TEST_P(comers_over_kinds, are_reached_by_gateways_of_two_kinds) {
  elastic_job job = begin("2", "farther", address(1) + "," + address(2));
  job.wait_for("listens");
  job.join({"--host", address(3)});
  job.join({"--host", address(4)});
  job.wait_for("heard");
  for (const char* const node : {"3", "2", "1"}) job.leave(node);
  job.expect_ok();
}

TEST_P(comers_over_kinds, to_whom_no_way_leads_are_refused) {
  expect_refused_without_a_way(begin("1", "greetings", address(1)), address(3), address(2));
}

class ring_of_hosts : public launch_test::by_transport<chain_of_hosts> {
 protected:
  void SetUp() override {
    chain_of_hosts::SetUp();
    if (!IsSkipped()) lay(1, 4, "cable5");
  }
};

// While the two opposite it talk by it.
TEST_P(ring_of_hosts, a_gateway_leaves_and_the_other_one_may_not) {
  elastic_job job("4", "ring", {"--host", all_hosts(), "--transport", GetParam()},
                  {std::string(all_networks) + ",192.168.5.0/24"}, {}, from_hub());
  job.wait_for("by node ");
  const bool by_1 = job.has_said("by node 1");
  job.leave(by_1 ? "1" : "3");
  job.wait_for("counted");
  const std::string why = job.leave_in_vain(by_1 ? "3" : "1");
  EXPECT_NE(why.find("cannot leave"), std::string::npos) << why;
  job.join({"--host", address(1)});
  job.expect_ok();
}

class circle_that_changes : public launch_test::by_transport<circle_of_hosts> {};

TEST_P(circle_that_changes, ways_go_around_a_network_that_becomes_slow_and_back) {
  elastic_job job("3", "slows", {"--host", hosts(), "--transport", GetParam()},
                  {std::string("--strata-networks=") + circle, "--strata-remeasure-s=1"}, {},
                  from_hub());
  job.wait_for("counts");
  make_slow(1, 3, "cable4");
  if (IsSkipped()) return;
  job.wait_for("around");
  make_fast(1, 3, "cable4");
  job.wait_for("back");
  job.expect_ok();
}

TEST_P(circle_that_changes, a_comer_knows_what_was_measured_with_one_that_left_before) {
  elastic_job job(
      "2", "measured", {"--host", address(1) + "," + address(2), "--transport", GetParam()},
      {std::string("--strata-networks=") + circle, "--strata-remeasure-s=1"}, {}, from_hub());
  job.wait_for("listens");
  job.leave("1");
  job.wait_for("gone");
  job.join({"--host", address(3)});
  job.expect_ok();
}

// Of two nodes that come to another host together each shares memory with the other one, and with
// nobody else.
class comers_in_pairs : public launch_test::four_hosts,
                        public testing::WithParamInterface<const char*> {};
constexpr auto name_of_pair = [](const auto& p) {
  return std::string(p.param).substr(sizeof "shm+" - 1);
};
INSTANTIATE_TEST_SUITE_P(sockets, comers_in_pairs, testing::Values("shm+tcp", "shm+udp"),
                         name_of_pair);
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(ucx, comers_in_pairs, testing::Values("shm+ucx"), name_of_pair);
#endif

TEST_P(comers_in_pairs, take_part) {
  elastic_job job("2", "rounds-of-five", {"--host", address(1), "--transport", GetParam()},
                  {"--strata-stats"}, {}, from_hub());
  job.wait_for("computes");
  job.join({"--host", address(2), "-n", "2"});
  job.leave("1");
  job.leave("2");
  // Until then the job goes on. Who has left is not waited for, and would be cut short by its end.
  job.try_to_join({"--host", address(2)});
  const std::string err = job.expect_end(0);
  EXPECT_TRUE(job.has_said("ok\n")) << err;
  // As they left: node 0 was on the host of node 1, and node 3 on that of node 2.
  const std::string other = std::string(GetParam()).substr(sizeof "shm+" - 1);
  for (const std::string& said :
       {"node 1 of [0-9], 1 by shm, 2 by " + other, "node 2 of [0-9], 1 by shm, 1 by " + other})
    EXPECT_TRUE(std::regex_search(err, std::regex(said))) << said << "\n" << err;
}

INSTANTIATE_TEST_SUITE_P(networks, comers_by, launch_test::transports_over_networks,
                         launch_test::name_of_transport);
INSTANTIATE_TEST_SUITE_P(networks, ring_of_hosts, launch_test::transports_over_networks,
                         launch_test::name_of_transport);
INSTANTIATE_TEST_SUITE_P(networks, circle_that_changes, launch_test::transports_over_networks,
                         launch_test::name_of_transport);

}  // namespace
