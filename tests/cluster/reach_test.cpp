// SPDX-License-Identifier: Apache-2.0
// Over which network two nodes talk.
#include "cluster/ways/reach.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace strata::cluster {
namespace {

using its_number = std::optional<std::uint16_t>;

launch::job_description three_nodes() {
  launch::job_description j;
  j.capacity = 3;
  return j;
}

// One that comes late is told of no address of theirs.
TEST(reach_of_a_comer, knows_the_hosts_of_those_who_left_before) {
  launch::job_description j = three_nodes();
  j.host_of = {0, 4, 7};
  reach who(j, false, {network_kind::tcp, network_kind::tcp});
  who.set(0, 0, {});
  who.set(2, 7, {});
  EXPECT_EQ(who.host(1), 4);
  EXPECT_FALSE(who.cost(2, 1)) << "it is not there";
  who.forget(2);
  EXPECT_EQ(who.host(2), 7);
  EXPECT_FALSE(who.cost(0, 2));
}

// Three nodes on hosts of their own; all are on all three networks, of which the last is the
// fastest and the first the next.
class three_networks : public testing::Test {
 protected:
  three_networks() {
    for (node_id n = 0; n < 3; ++n) {
      launch::address where;
      for (const std::uint32_t megabits : {2000U, 1000U, 10'000U})
        where.doors.push_back({"h", static_cast<std::uint16_t>(n + 1), megabits, 9});
      who.set(n, n, where);
    }
  }
  reach who{three_nodes(), false, {network_kind::tcp, network_kind::tcp, network_kind::tcp}};
};

TEST_F(three_networks, two_nodes_use_the_fastest_and_spare_the_next) {
  EXPECT_EQ(who.network(0, 1), its_number(2));
  EXPECT_EQ(who.spare_network(0, 1), its_number(0));
  EXPECT_EQ(who.towards(0, 1).port, 2);
  EXPECT_EQ(who.spare_towards(0, 1).port, 9);
}

TEST_F(three_networks, what_is_closed_between_two_is_open_for_others) {
  who.close({0, 1, 2});
  for (const auto& [a, b] : {std::pair<node_id, node_id>{0, 1}, {1, 0}})
    EXPECT_EQ(who.network(a, b), its_number(0));
  EXPECT_EQ(who.network(0, 2), its_number(2));
  EXPECT_GT(who.cost(0, 1)->cost_ns, who.cost(0, 2)->cost_ns);
}

// They have tried no third one.
TEST_F(three_networks, where_two_are_closed_no_connection_is) {
  who.close({0, 1, 2});
  who.close({0, 1, 0});
  EXPECT_EQ(who.network(0, 1), std::nullopt);
  EXPECT_EQ(who.towards(0, 1).port, 0);
  EXPECT_FALSE(who.cost(0, 1));
  EXPECT_TRUE(who.cost(1, 2));
}

TEST_F(three_networks, what_was_measured_does_not_open_what_is_closed) {
  who.close({0, 1, 2});
  who.set_costs({{{{1, 2, 20, 60}}, {}, {}}, {0, 1, 2}});  // between their hosts, by others
  EXPECT_EQ(who.network(0, 1), its_number(0));
}

TEST_F(three_networks, what_does_not_join_their_hosts_is_not_used) {
  joined_hosts joins;
  for (const std::uint16_t h : {0, 1}) joins.add(h);
  joins.join(1, 0, 1);
  who.set_joined(joins);
  for (const auto& [a, b] : {std::pair<node_id, node_id>{0, 1}, {1, 0}}) {
    EXPECT_EQ(who.network(a, b), its_number(1));
    EXPECT_EQ(who.spare_network(a, b), std::nullopt);
  }
  EXPECT_EQ(who.network(0, 2), its_number(2)) << "that host was not tried";
}

// Two nodes that share three equally fast networks: over UDP, UCX and TCP.
class three_kinds : public testing::Test {
 protected:
  three_kinds() {
    for (node_id n = 0; n < 3; ++n) {
      const std::string own = std::to_string(n);
      launch::address where;
      where.doors.push_back({"u", 1, 10'000, 4, "nonce" + own, "spare nonce" + own});
      where.doors.push_back({"", 0, 10'000, 0, "ucx" + own, "spare ucx" + own});
      where.doors.push_back({"t", 3, 10'000, 6, "", ""});
      if (n == 2) where.doors[1] = {};  // this one is not on it
      who.set(n, n, where);
    }
  }
  reach who{three_nodes(), false, {network_kind::udp, network_kind::ucx, network_kind::tcp}};
};

TEST_F(three_kinds, of_equal_networks_that_of_the_nearest_kind_is_used) {
  EXPECT_EQ(who.network(0, 1), its_number(1));
  EXPECT_EQ(who.spare_network(0, 1), its_number(2));
  EXPECT_EQ(who.network(0, 2), its_number(2));
  EXPECT_EQ(who.spare_network(0, 2), its_number(0));
}

TEST_F(three_kinds, each_is_found_as_its_kind_finds) {
  EXPECT_EQ(who.towards(0, 1).worker, "ucx1");
  EXPECT_EQ(who.towards(0, 1).port, 0);
  EXPECT_EQ(who.spare_towards(0, 1).port, 6);
  EXPECT_TRUE(who.spare_towards(0, 1).worker.empty());
  EXPECT_EQ(who.spare_towards(0, 2).port, 4);
  EXPECT_EQ(who.spare_towards(0, 2).worker, "spare nonce2");
  who.close({0, 1, 2});
  EXPECT_EQ(who.towards(0, 1).worker, "ucx1");
  who.close({0, 2, 2});
  EXPECT_EQ(who.towards(0, 2).worker, "nonce2");
}

TEST_F(three_kinds, cost_what_is_nominal_for_them_until_they_are_measured) {
  const auto by_ucx = who.cost(0, 1), by_tcp = who.cost(0, 2);
  EXPECT_EQ(by_ucx->latency_ns, nominal_of(network_kind::ucx).latency_ns);
  EXPECT_EQ(by_tcp->latency_ns, nominal_of(network_kind::tcp).latency_ns);
  EXPECT_EQ(by_ucx->bytes_per_s, 0);
  EXPECT_EQ(by_tcp->cost_ns - by_ucx->cost_ns, by_tcp->latency_ns - by_ucx->latency_ns);
}

// UCX much slower than UDP, between their hosts.
TEST_F(three_kinds, what_is_measured_counts_more_than_the_kind) {
  who.set_costs({{{{1, 1, 60, 30}, {1, 0, 20, 60}}, {}, {}}, {0, 1, 2}});
  EXPECT_EQ(who.network(0, 1), its_number(0));
  EXPECT_EQ(who.spare_network(0, 1), its_number(1));
  EXPECT_EQ(who.towards(0, 1).worker, "nonce1");
}

}  // namespace
}  // namespace strata::cluster
