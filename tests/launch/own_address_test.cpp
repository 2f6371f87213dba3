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

TEST(own_address, others_reach_what_the_name_stands_for_unless_that_is_loopback) {
  EXPECT_EQ(reachable_address(host, {"10.1.2.3"}), "10.1.2.3");
  EXPECT_EQ(reachable_address(host, {"127.0.1.1"}), "192.168.7.9");
  EXPECT_EQ(reachable_address(host, {"127.0.0.1"}), "192.168.7.9");
  EXPECT_EQ(reachable_address(host, {}), "192.168.7.9");
  EXPECT_THROW(reachable_address({host[0]}, {}), strata::error);
}

}  // namespace
