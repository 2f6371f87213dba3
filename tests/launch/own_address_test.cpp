// SPDX-License-Identifier: Apache-2.0
#include "launch/own_address.hpp"

#include <gtest/gtest.h>

#include "strata/error.hpp"

namespace {

using namespace strata::launch;

const std::vector<network_address> host{{"lo", "127.0.0.1", true},
                                        {"eth0", "192.168.7.9", false},
                                        {"ib0", "10.1.2.3", false},
                                        {"ib0", "fd00:1::3", false}};

TEST(own_address, an_address_a_network_or_an_interface_chooses) {
  EXPECT_EQ(chosen_address(host, "192.168.7.9"), "192.168.7.9");
  EXPECT_EQ(chosen_address(host, "10.1.0.0/16"), "10.1.2.3");
  EXPECT_EQ(chosen_address(host, "10.1.3.0/23"), "10.1.2.3");
  EXPECT_EQ(chosen_address(host, "fd00:1::/32"), "fd00:1::3");
  EXPECT_EQ(chosen_address(host, "ib0"), "10.1.2.3");
  EXPECT_EQ(chosen_address(host, "lo"), "127.0.0.1");
}

TEST(own_address, what_this_host_does_not_have_is_refused) {
  for (const char* const words : {"10.2.0.0/16", "192.168.7.8", "eth1", "10.1.2.3/33", "10.1.2.3/",
                                  "fd00:2::/32", "/8", "no such"}) {
    EXPECT_THROW(chosen_address(host, words), strata::user_error) << words;
  }
}

TEST(own_address, a_network_that_this_host_is_not_on_is_none) {
  EXPECT_EQ(address_within(host, "10.1.0.0/16")->numeric, "10.1.2.3");
  EXPECT_EQ(address_within(host, "fd00:1::/32")->interface, "ib0");
  EXPECT_FALSE(address_within(host, "10.2.0.0/16"));
  for (const char* const words :
       {"", "ib0", "10.1.2.3", "10.1.0.0/", "10.1.0.0/33", "/8", "10.1/16"})
    EXPECT_THROW((void)address_within(host, words), strata::user_error) << words;
}

TEST(own_address, a_list_of_networks_says_of_each_by_what_nodes_talk_on_it) {
  using strata::network_kind;
  const auto all =
      networks_in("10.1.0.0/16,udp:10.2.0.0/16,ucx:fd00:1::/32,tcp:fd00:2::/32", network_kind::tcp);
  const std::vector<named_network> expected{{"10.1.0.0/16", network_kind::tcp, "10.1.0.0/16"},
                                            {"10.2.0.0/16", network_kind::udp, "udp:10.2.0.0/16"},
                                            {"fd00:1::/32", network_kind::ucx, "ucx:fd00:1::/32"},
                                            {"fd00:2::/32", network_kind::tcp, "tcp:fd00:2::/32"}};
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].range, expected[i].range);
    EXPECT_EQ(all[i].kind, expected[i].kind) << all[i].range;
    EXPECT_EQ(all[i].words, expected[i].words);
  }
  EXPECT_TRUE(has_kind(all, network_kind::ucx));
  EXPECT_FALSE(has_kind({expected[0], expected[1]}, network_kind::ucx));
}

TEST(own_address, networks_are_those_that_others_may_be_on) {
  const std::vector<network_address> all{
      {"lo", "127.0.0.1", true, 0, 8, true},
      {"eth0", "192.168.7.9", false, 1000, 24, true},
      {"eth0", "192.168.7.10", false, 1000, 24, true},  // one more on the same
      {"tun0", "10.9.0.1", false, 0, 32, true},         // of one address
      {"eth1", "169.254.3.4", false, 0, 16, true},      // given by itself
      {"docker0", "172.17.0.1", false, 0, 16, false},   // with nothing at its other end
      {"ib0", "10.1.130.3", false, 0, 17, true},
      {"ib0", "fd00:1:2:3::4", false, 0, 33, true},
      {"odd", "10.2.0.1", false, 0, 0, true},
  };
  std::vector<std::string> found;
  for (const own_network& n : networks_of(all)) found.push_back(n.range + " " + n.mine.numeric);
  EXPECT_EQ(found,
            (std::vector<std::string>{"192.168.7.0/24 192.168.7.9", "10.1.128.0/17 10.1.130.3",
                                      "fd00:1::/33 fd00:1:2:3::4"}));
}

TEST(own_address, the_system_tells_of_each_what_part_is_the_networks) {
  for (const network_address& one : own_addresses()) {
    if (one.numeric != "127.0.0.1") continue;
    EXPECT_EQ(one.prefix, 8U);
    EXPECT_TRUE(one.running);
  }
}

TEST(own_address, auto_names_no_network_and_stands_alone) {
  using strata::network_kind;
  EXPECT_TRUE(networks_in("auto", network_kind::tcp).empty());
  for (const char* const list :
       {"auto,10.1.0.0/16", "10.1.0.0/16,auto", "auto,auto", "tcp:auto", "Auto", "auto/8"})
    EXPECT_THROW((void)networks_in(list, network_kind::tcp), strata::user_error) << list;
}

TEST(own_address, of_which_no_kind_is_said_is_of_the_usual_one) {
  using strata::network_kind;
  EXPECT_TRUE(networks_in("", network_kind::udp).empty());
  EXPECT_EQ(networks_in("fd00::/8", network_kind::udp).at(0).kind, network_kind::udp);
  EXPECT_EQ(networks_in("fd00::/8", network_kind::udp).at(0).range, "fd00::/8");
  EXPECT_EQ(networks_in("tcp:10.1.0.0/16", network_kind::udp).at(0).kind, network_kind::tcp);
  // A job that has none between nodes.
  EXPECT_EQ(networks_in("10.1.0.0/16", network_kind::none).at(0).kind, network_kind::tcp);
}

TEST(own_address, a_network_of_no_kind_that_there_is_is_refused) {
  for (const char* const words : {"shm:10.1.0.0/16", "UDP:10.1.0.0/16", ":10.1.0.0/16",
                                  "udp:", "ucx", "udp:udp:10.1.0.0/16", "10.1.0.0/16,tcp:10.2"})
    EXPECT_THROW((void)networks_in(words, strata::network_kind::tcp), strata::user_error) << words;
}

TEST(own_address, others_reach_what_the_name_stands_for_unless_that_is_loopback) {
  EXPECT_EQ(reachable_address(host, {"10.1.2.3"}), "10.1.2.3");
  EXPECT_EQ(reachable_address(host, {"127.0.1.1"}), "192.168.7.9");
  EXPECT_EQ(reachable_address(host, {"127.0.0.1"}), "192.168.7.9");
  EXPECT_EQ(reachable_address(host, {}), "192.168.7.9");
  EXPECT_THROW(reachable_address({host[0]}, {}), strata::error);
}

}  // namespace
