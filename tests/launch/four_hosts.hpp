// SPDX-License-Identifier: Apache-2.0
// Four hosts with networks of their own, joined by a bridge: what works here does not work by
// accident of a shared loopback interface. Needs root and `ip netns`.
#pragma once
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "../common/in_turn.hpp"
#include "command.hpp"

namespace launch_test {

inline bool shell(const std::string& line) {
  return std::system((line + " >/dev/null 2>&1").c_str()) == 0;
}

// Containers whose root may make namespaces, but may not connect them.
inline bool may_administer_networks() {
  __user_cap_header_struct head{};
  head.version = _LINUX_CAPABILITY_VERSION_3;
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  return ::syscall(SYS_capget, &head, sets.data()) == 0 &&
         (sets[0].effective >> CAP_NET_ADMIN & 1U) != 0;
}

// A namespace for the launcher and its bridge, and one for each host, whose name is its address:
// `ip netns exec` then takes the place of ssh.
class four_hosts : public testing::Test {
 protected:
  void SetUp() override {
    if (strata::test::left_to_the_other_sanitizer()) GTEST_SKIP() << "the other sanitizer's turn";
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    if (!may_administer_networks())
      GTEST_SKIP() << "bridges and their addresses need CAP_NET_ADMIN";
    remove_leftovers();
    if (!make(hub())) GTEST_SKIP() << "no network namespaces here: this needs iproute2";
    bool ok = shell("ip -n " + hub() + " link add br0 type bridge") &&
              shell("ip -n " + hub() + " addr add " + address(100) + "/24 dev br0") &&
              shell("ip -n " + hub() + " link set br0 up") &&
              shell("ip -n " + hub() + " link set lo up");
    for (int h = 1; ok && h <= 4; ++h) {
      std::string port = "port";
      port += std::to_string(h);
      ok = make(address(h)) &&
           shell("ip -n " + hub() + " link add " + port + " type veth peer name eth0 netns " +
                 address(h)) &&
           shell("ip -n " + hub() + " link set " + port + " master br0 up") &&
           shell("ip -n " + address(h) + " addr add " + address(h) + "/24 dev eth0") &&
           shell("ip -n " + address(h) + " link set eth0 up") &&
           shell("ip -n " + address(h) + " link set lo up");
    }
    ASSERT_TRUE(ok && shell("ip netns exec " + address(1) + " true"))
        << "this system makes network namespaces, but no bridges, or does not let us join them";
  }
  // That of the hub last: it tells remove_leftovers() of the others.
  void TearDown() override {
    for (; !made_.empty(); made_.pop_back()) shell("ip netns del " + made_.back());
  }

  static std::string hub() { return hub_prefix + std::to_string(::getpid()); }
  static std::string address(int host) { return address(::getpid(), host); }
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

 private:
  static constexpr const char* hub_prefix = "strata-test-";
  // Tests may run side by side.
  static std::string address(pid_t test, int host) {
    std::ostringstream text;
    text << "10." << test / 250 % 250 << '.' << test % 250 << '.' << host;
    return text.str();
  }
  bool make(const std::string& name) {
    if (!shell("ip netns add " + name)) return false;
    made_.push_back(name);
    return true;
  }
  // What tests have left that were killed.
  static void remove_leftovers() {
    const std::string prefix = hub_prefix;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator("/run/netns", none)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with(prefix)) continue;
      const pid_t test = std::atoi(name.c_str() + prefix.size());
      if (test <= 0 || ::kill(test, 0) == 0 || errno != ESRCH) continue;
      for (int h = 1; h <= 4; ++h) shell("ip netns del " + address(test, h));
      shell("ip netns del " + name);
    }
  }

  std::vector<std::string> made_;
};

}  // namespace launch_test
