// SPDX-License-Identifier: Apache-2.0
// Four hosts of which none shares a network with all others.
#pragma once
#include <string>
#include <vector>

#include "four_hosts.hpp"

namespace launch_test {

// Each host shares a network with the one before it and with the next one, and no other: what the
// first says to the last goes by the two between.
class chain_of_hosts : public four_hosts {
 protected:
  void SetUp() override {
    four_hosts::SetUp();
    for (int h = 1; !IsSkipped() && h < 4; ++h) {
      const std::string cable = "cable" + std::to_string(h);
      if (!shell("ip -n " + address(h) + " link add " + cable + " type veth peer name " + cable +
                 " netns " + address(h + 1)) ||
          !put_on(h, cable) || !put_on(h + 1, cable))
        GTEST_SKIP() << "this system does not let us lay cables between namespaces";
    }
  }
  static bool shell(const std::string& line) { return launch_test::shell(line); }
  static bool put_on(int host, const std::string& cable) {
    return shell("ip -n " + address(host) + " addr add 192.168." + cable.substr(5) + "." +
                 std::to_string(host) + "/24 dev " + cable) &&
           shell("ip -n " + address(host) + " link set " + cable + " up");
  }
  static constexpr const char* all_networks =
      "--strata-networks=192.168.1.0/24,192.168.2.0/24,192.168.3.0/24";

  static void run(const std::string& nodes, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), all_networks);
    launch_test::expect_ok(launch_test::run({"-n", nodes, "--host", all_hosts()}, arguments),
                           from_hub());
  }
};

}  // namespace launch_test
