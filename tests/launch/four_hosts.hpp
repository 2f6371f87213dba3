// SPDX-License-Identifier: Apache-2.0
// Four hosts with networks of their own, joined by a bridge: what works here does not work by
// accident of a shared loopback interface. Needs root and `ip netns`.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "../common/in_turn.hpp"
#include "command.hpp"

namespace launch_test {

inline bool shell(const std::string& line) {
  return std::system((line + " >/dev/null 2>&1").c_str()) == 0;
}

// A namespace for the launcher and its bridge, and one for each host, whose name is its address:
// `ip netns exec` then takes the place of ssh.
class four_hosts : public testing::Test {
 protected:
  void SetUp() override {
    if (strata::test::left_to_the_other_sanitizer()) GTEST_SKIP() << "the other sanitizer's turn";
    if (::geteuid() != 0 || !shell("ip netns add " + hub())) {
      GTEST_SKIP() << "no network namespaces here: this needs root and iproute2";
    }
    bool ok = shell("ip -n " + hub() + " link add br0 type bridge") &&
              shell("ip -n " + hub() + " addr add " + address(100) + "/24 dev br0") &&
              shell("ip -n " + hub() + " link set br0 up") &&
              shell("ip -n " + hub() + " link set lo up");
    for (int h = 1; ok && h <= 4; ++h) {
      std::string port = "port";
      port += std::to_string(h);
      ok = shell("ip netns add " + address(h)) &&
           shell("ip -n " + hub() + " link add " + port + " type veth peer name eth0 netns " +
                 address(h)) &&
           shell("ip -n " + hub() + " link set " + port + " master br0 up") &&
           shell("ip -n " + address(h) + " addr add " + address(h) + "/24 dev eth0") &&
           shell("ip -n " + address(h) + " link set eth0 up") &&
           shell("ip -n " + address(h) + " link set lo up");
    }
    if (!ok || !shell("ip netns exec " + address(1) + " true")) {
      GTEST_SKIP() << "this system does not let us join network namespaces";
    }
  }
  void TearDown() override {
    for (int h = 1; h <= 4; ++h) shell("ip netns del " + address(h));
    shell("ip netns del " + hub());
  }

  static std::string hub() { return "strata-test-" + std::to_string(::getpid()); }
  // Tests may run side by side.
  static std::string address(int host) {
    std::ostringstream text;
    text << "10." << ::getpid() / 250 % 250 << '.' << ::getpid() % 250 << '.' << host;
    return text.str();
  }
  static std::string all_hosts() {
    return address(1) + "," + address(2) + "," + address(3) + "," + address(4);
  }
  static command::setting from_hub() {
    // What is between these hosts are networks, though one kernel could let their processes share
    // memory, which UCX would find.
    return {.variables = {"STRATA_SSH=ip netns exec", "UCX_TLS=tcp"},
            .input = {},
            .around = {"ip", "netns", "exec", hub()}};
  }
};

}  // namespace launch_test
