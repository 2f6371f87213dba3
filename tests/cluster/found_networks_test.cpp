// SPDX-License-Identifier: Apache-2.0
// What nodes make of the networks that they have found.
#include "cluster/ways/found_networks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "launch/frame.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

using texts = std::vector<std::string>;

// Hosts of one node each. Of which hosts answer each other the test says, by the addresses.
class some_hosts : public testing::Test {
 protected:
  // An address of host h; the first is its own, at which it is known.
  void put(std::size_t h, const std::string& interface, const std::string& range,
           const std::string& address) {
    finds_.resize(std::max(finds_.size(), h + 1));
    const launch::address where{address, port, {}};
    if (finds_[h].networks.empty() && finds_[h].home.port == 0) finds_[h].home = where;
    if (!range.empty()) finds_[h].networks.push_back({range, interface, where});
  }
  found_networks found() const {
    texts told;
    std::vector<std::uint16_t> host_of;
    for (const own_finds& one : finds_) {
      host_of.push_back(static_cast<std::uint16_t>(10 + told.size()));
      told.push_back(pack(one));
    }
    return {told, host_of};
  }
  // "10.1.0.0/16: 10.1.0.1 10.1.0.2" of what host h tries.
  texts tried_by(std::size_t h) const {
    texts all;
    for (const auto& c : found().tried_by(static_cast<node_id>(h), nodes())) {
      std::string line;
      for (const launch::address& a : c.others) line += a.port != 0 ? " " + a.host : "";
      if (!line.empty()) all.push_back(c.range + ":" + line);
    }
    return all;
  }
  // All answer at what is tried, but for the addresses for which `is_silent` says so.
  found_networks::outcome judge(
      const std::function<bool(const std::string&)>& is_silent =
          [](const std::string&) { return false; },
      bool more_may_come = false) const {
    texts told;
    for (std::size_t h = 0; h < finds_.size(); ++h) {
      std::vector<answer> heard;
      const auto tried = found().tried_by(static_cast<node_id>(h), nodes());
      for (std::size_t i = 0; i < tried.size(); ++i) {
        for (node_id n = 0; n < nodes(); ++n) {
          const launch::address& a = tried[i].others[n];
          if (a.port != 0 && !is_silent(a.host))
            heard.push_back({static_cast<std::uint16_t>(i), n});
        }
      }
      told.push_back(pack(heard));
    }
    return found().judge(told, more_may_come);
  }
  node_id nodes() const { return static_cast<node_id>(finds_.size()); }

  static constexpr std::uint16_t port = 9;
  static constexpr std::uint16_t host_1 = 10, host_2 = 11, host_3 = 12;  // their numbers
  std::vector<own_finds> finds_;
};

TEST_F(some_hosts, that_share_two_networks_have_both) {
  for (std::size_t h = 0; h < 3; ++h) {
    const std::string last = std::to_string(h);
    put(h, "eth0", "10.1.0.0/16", "10.1.0." + last);
    if (h != 2) put(h, "ib0", "10.2.0.0/16", "10.2.0." + last);
    put(h, "own", "10.9." + last + ".0/24", "10.9." + last + ".1");  // no other is on it
  }
  EXPECT_EQ(tried_by(0), (texts{"10.1.0.0/16: 10.1.0.1 10.1.0.2", "10.2.0.0/16: 10.2.0.1"}));
  const auto all = judge();
  EXPECT_EQ(all.ranges, (texts{"10.1.0.0/16", "10.2.0.0/16"}));
  EXPECT_TRUE(all.joins.are_joined(host_1, host_3, 0));
  EXPECT_TRUE(all.joins.are_joined(host_1, host_2, 1));
  EXPECT_FALSE(all.joins.are_joined(host_2, host_3, 1));
  // A host that comes may be on neither.
  const auto growing = judge([](const std::string&) { return false; }, true);
  EXPECT_EQ(growing.ranges, (texts{"10.1.0.0/16", "10.2.0.0/16", ""}));
  EXPECT_FALSE(growing.joins.are_joined(host_1, host_2, 2)) << "that is the first one";
}

TEST_F(some_hosts, that_share_the_network_of_their_addresses_alone_need_none) {
  for (std::size_t h = 0; h < 3; ++h) put(h, "eth0", "10.1.0.0/16", "10.1.0." + std::to_string(h));
  EXPECT_TRUE(judge().ranges.empty());
}

// As bridges of containers are.
TEST_F(some_hosts, a_network_on_which_two_have_the_same_address_is_none) {
  for (std::size_t h = 0; h < 3; ++h) {
    put(h, "eth0", "10.1.0.0/16", "10.1.0." + std::to_string(h));
    put(h, "docker0", "172.17.0.0/16", h == 2 ? "172.17.0.5" : "172.17.0.1");
  }
  EXPECT_EQ(tried_by(0), texts{"10.1.0.0/16: 10.1.0.1 10.1.0.2"});
  EXPECT_TRUE(judge().ranges.empty());
}

TEST_F(some_hosts, a_network_that_does_not_answer_is_left_out) {
  for (std::size_t h = 0; h < 2; ++h) {
    const std::string last = std::to_string(h);
    put(h, "eth0", "10.1.0.0/16", "10.1.0." + last);
    put(h, "ib0", "10.2.0.0/16", "10.2.0." + last);
    put(h, "virbr0", "192.168.122.0/24", "192.168.122." + last);
  }
  const auto all = judge([](const std::string& a) { return a.starts_with("192.168."); });
  EXPECT_EQ(all.ranges, (texts{"10.1.0.0/16", "10.2.0.0/16"}));
}

TEST_F(some_hosts, an_answer_that_only_one_end_has_had_does_not_count) {
  for (std::size_t h = 0; h < 2; ++h) {
    put(h, "eth0", "10.1.0.0/16", "10.1.0." + std::to_string(h));
    put(h, "ib0", "10.2.0.0/16", "10.2.0." + std::to_string(h));
  }
  EXPECT_TRUE(judge([](const std::string& a) { return a == "10.2.0.1"; }).ranges.empty());
}

// 192.168.1.0/24 in two rooms.
TEST_F(some_hosts, a_range_that_stands_for_two_networks_joins_whom_each_joins) {
  for (std::size_t h = 0; h < 3; ++h) {
    put(h, "eth0", "10.1.0.0/16", "10.1.0." + std::to_string(h));
    put(h, "eth1", "192.168.1.0/24", "192.168.1." + std::to_string(h));
  }
  const auto all = judge([](const std::string& a) { return a == "192.168.1.2"; });
  EXPECT_EQ(all.ranges, (texts{"10.1.0.0/16", "192.168.1.0/24"}));
  EXPECT_TRUE(all.joins.are_joined(host_1, host_2, 1));
  EXPECT_FALSE(all.joins.are_joined(host_1, host_3, 1));
  EXPECT_FALSE(all.joins.are_joined(host_3, host_2, 1));
}

TEST_F(some_hosts, the_same_interfaces_under_another_name_are_no_second_network) {
  for (std::size_t h = 0; h < 2; ++h) {
    const std::string last = std::to_string(h);
    put(h, "eth0", "10.1.0.0/16", "10.1.0." + last);
    put(h, "eth0", "fd00:1::/64", "fd00:1::" + last);
    put(h, "ib0", "10.2.0.0/16", "10.2.0." + last);
    put(h, "ib0", "10.3.0.0/16", "10.3.0." + last);
  }
  EXPECT_EQ(judge().ranges, (texts{"10.1.0.0/16", "10.2.0.0/16"}));
  // Unless the first name is of no use.
  EXPECT_EQ(judge([](const std::string& a) { return a.starts_with("10.2."); }).ranges,
            (texts{"10.1.0.0/16", "10.3.0.0/16"}));
}

// A router is between some of them, and their addresses are all that these share.
TEST_F(some_hosts, whose_networks_are_joined_by_a_router_reach_each_other_at_their_addresses) {
  put(0, "eth0", "10.1.0.0/16", "10.1.0.1");
  put(1, "eth0", "10.1.0.0/16", "10.1.0.2");
  put(2, "eth0", "10.2.0.0/16", "10.2.0.1");
  EXPECT_EQ(tried_by(0), (texts{"10.1.0.0/16: 10.1.0.2", ": 10.2.0.1"}));
  EXPECT_EQ(tried_by(2), texts{": 10.1.0.1 10.1.0.2"});
  const auto all = judge();
  EXPECT_EQ(all.ranges, (texts{"10.1.0.0/16", ""}));
  EXPECT_TRUE(all.joins.are_joined(host_1, host_2, 0));
  EXPECT_FALSE(all.joins.are_joined(host_1, host_2, 1));
  EXPECT_TRUE(all.joins.are_joined(host_1, host_3, 1));
}

TEST_F(some_hosts, that_share_nothing_are_a_job_without_networks) {
  put(0, "eth0", "10.1.0.0/16", "10.1.0.1");
  put(1, "eth0", "10.2.0.0/16", "10.2.0.1");
  EXPECT_TRUE(judge().ranges.empty());
  EXPECT_TRUE(judge([](const std::string&) { return true; }).ranges.empty());
}

// Every two of them share one.
TEST_F(some_hosts, in_a_row_are_joined_by_those_between) {
  for (std::size_t h = 0; h < 3; ++h) put(h, "eth0", "", "10.1.0." + std::to_string(h));
  put(0, "a", "192.168.1.0/24", "192.168.1.1");
  put(1, "a", "192.168.1.0/24", "192.168.1.2");
  put(1, "b", "192.168.2.0/24", "192.168.2.2");
  put(2, "b", "192.168.2.0/24", "192.168.2.3");
  const auto all = judge([](const std::string& a) { return a.starts_with("10."); });
  EXPECT_EQ(all.ranges, (texts{"192.168.1.0/24", "192.168.2.0/24"}));
  EXPECT_TRUE(all.joins.are_joined(host_1, host_2, 0));
  EXPECT_TRUE(all.joins.are_joined(host_2, host_3, 1));
  for (std::uint16_t n = 0; n < 3; ++n) EXPECT_FALSE(all.joins.are_joined(host_1, host_3, n));
}

TEST_F(some_hosts, that_come_later_are_joined_by_all_that_they_are_on) {
  joined_hosts joins;
  for (const std::uint16_t h : {host_1, host_2}) joins.add(h);
  EXPECT_FALSE(joins.are_joined(host_1, host_2, 0));
  EXPECT_TRUE(joins.are_joined(host_1, host_3, 0));
  EXPECT_TRUE(joins.are_joined(host_1, host_1, 0)) << "nodes of one host";
}

TEST(found_networks, of_nodes_of_one_host_only_the_first_counts) {
  own_finds a, b;
  a.home = {"10.1.0.1", 9, {}};
  a.networks = {{"10.1.0.0/16", "eth0", a.home}};
  b.home = {"10.1.0.2", 9, {}};
  b.networks = {{"10.1.0.0/16", "eth0", b.home}};
  const found_networks all({pack(a), "", pack(b), ""}, {0, 0, 1, 1});
  const auto tried = all.tried_by(0, 4);
  ASSERT_EQ(tried.size(), 2U);
  for (node_id n = 0; n < 4; ++n) EXPECT_EQ(tried[0].others[n].port, n == 2 ? 9 : 0) << n;
  for (const auto& c : all.tried_by(1, 4)) {
    for (const launch::address& one : c.others) EXPECT_EQ(one.port, 0);
  }
}

TEST(found_networks, nonsense_is_refused) {
  own_finds a;
  a.home = {"10.1.0.1", 9, {}};
  a.networks = {{"10.1.0.0/16", "eth0", a.home}};
  const std::string good = pack(a);
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_THROW((void)unpack_own_finds(good.substr(0, bytes)), error) << bytes;
  EXPECT_THROW((void)unpack_own_finds(good + "x"), error);
  own_finds odd = a;
  odd.networks[0].range = "10.1.0.0/33";
  EXPECT_THROW((void)unpack_own_finds(pack(odd)), error);
  const std::string heard = pack(std::vector<answer>{{0, 1}});
  EXPECT_EQ(unpack_answers(heard), (std::vector<answer>{{0, 1}}));
  for (std::size_t bytes = 0; bytes < heard.size(); ++bytes)
    EXPECT_THROW((void)unpack_answers(heard.substr(0, bytes)), error) << bytes;
  own_finds b = a;
  b.home.host = "10.1.0.2";
  b.networks[0].where.host = "10.1.0.2";
  const found_networks all({good, pack(b)}, {0, 1});
  const std::string none = pack(std::vector<answer>{});
  // Of itself, of nobody, over none that there is, over one that is not tried.
  for (const answer& odd_one : {answer{0, 0}, answer{0, 2}, answer{2, 1}, answer{1, 1}})
    EXPECT_THROW((void)all.judge({pack(std::vector<answer>{odd_one}), none}, false), error);
}

TEST(found_networks, of_more_than_fit_the_first_are_told) {
  own_finds many;
  for (int i = 0; i < 2000; ++i)
    many.networks.push_back({"10.1.0.0/16", std::string(15, 'e'), {"10.1.0.1", 9, {}}});
  const std::string told = pack(many);
  EXPECT_LE(told.size(), launch::found_bytes_max);
  const own_finds again = unpack_own_finds(told);
  EXPECT_GT(again.networks.size(), 100U);
  EXPECT_LT(again.networks.size(), 2000U);
}

}  // namespace
}  // namespace strata::cluster
