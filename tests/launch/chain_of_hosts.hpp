// SPDX-License-Identifier: Apache-2.0
// Four hosts of which none shares a network with all others.
#pragma once
#include <string>
#include <vector>

#include "four_hosts.hpp"
#include "strata/detail/cpu.hpp"

namespace launch_test {

// Each host shares a network with the one before it and with the next one, and no other: what the
// first says to the last goes by the two between.
class chain_of_hosts : public four_hosts {
 protected:
  void SetUp() override {
    four_hosts::SetUp();
    for (int h = 1; !IsSkipped() && h < 4; ++h) lay(h, h + 1, "cable" + std::to_string(h));
  }
  static void lay(int host, int other, const std::string& cable) {
    if (!shell("ip -n " + address(host) + " link add " + cable + " type veth peer name " + cable +
               " netns " + address(other)) ||
        !put_on(host, cable) || !put_on(other, cable))
      GTEST_SKIP() << "this system does not let us lay cables between namespaces";
  }
  // UCX takes what runs, as the system says, which it may find out a second after that is so. Of
  // some interfaces it never says more than that it does not know.
  static void wait_until_cables_run(int hosts, const std::string& which = "cable*") {
    const std::string states = "/sys/class/net/" + which + "/operstate";
    for (int h = 1; h <= hosts; ++h) {
      if (!shell("ip netns exec " + address(h) + " sh -c 'ls " + states +
                 " && while grep -qvE \"^(up|unknown)$\" " + states + "; do sleep 0.02; done'"))
        GTEST_SKIP() << "this system does not show the cables of a namespace in /sys";
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

  // The same over networks of different kinds.
  static std::string networks_of_kinds(const char* first, const char* second, const char* third) {
    return std::string("--strata-networks=") + first + ":192.168.1.0/24," + second +
           ":192.168.2.0/24," + third + ":192.168.3.0/24";
  }

  static void run(const std::string& nodes, const std::string& what,
                  const std::string& transport = "auto") {
    launch_test::expect_ok(
        launch_test::run({"-n", nodes, "--transport", transport, "--host", all_hosts()},
                         {all_networks, what}),
        from_hub());
  }
};

// Which find their networks themselves: that of the launcher's bridge, whose address each host has,
// as well as their own.
class unnamed_networks : public chain_of_hosts {
 protected:
  void SetUp() override {
    chain_of_hosts::SetUp();
    if (!IsSkipped()) wait_until_all_run();
  }
  // What does not is not looked at.
  static void wait_until_all_run() { wait_until_cables_run(4, "*"); }
  // Each host is then alone with what it has on the bridge: a network that looks like one.
  static void part_the_bridge() {
    for (int h = 1; h <= 4; ++h) {
      if (!shell("bridge -n " + hub() + " link set dev port" + std::to_string(h) + " isolated on"))
        GTEST_SKIP() << "this system does not let us part the hosts of a bridge";
    }
  }
  // A network of this host and nobody else, that runs.
  static void put_aside(int host, const std::string& interface, const std::string& address) {
    if (!shell("ip -n " + launch_test::four_hosts::address(host) + " link add " + interface +
               " type veth peer name other-" + interface) ||
        !shell("ip -n " + launch_test::four_hosts::address(host) + " addr add " + address +
               " dev " + interface) ||
        !shell("ip -n " + launch_test::four_hosts::address(host) + " link set " + interface +
               " up") ||
        !shell("ip -n " + launch_test::four_hosts::address(host) + " link set other-" + interface +
               " up"))
      GTEST_SKIP() << "this system does not let us lay cables within a namespace";
  }
  static void make_slow_at(int host, const std::string& interface) {
    if (!shell("ip netns exec " + address(host) + " tc qdisc add dev " + interface +
               " root tbf rate 2mbit burst 16kb latency 200ms"))
      GTEST_SKIP() << "this system does not let us slow a cable down (tc, tbf)";
  }
  static std::string of_bridge() {
    const std::string first = address(1);
    return first.substr(0, first.size() - 1) + "0/24";
  }
  static std::string hosts_up_to(int last) {
    std::string all = address(1);
    for (int h = 2; h <= last; ++h) all += "," + address(h);
    return all;
  }
  static words flags(int hosts, const std::string& transport = "auto") {
    return {"-n", std::to_string(hosts), "--transport", transport, "--host", hosts_up_to(hosts)};
  }
  static std::string table(int hosts, const std::string& transport = "auto") {
    words line{"info", "--routes", "--networks", "auto"};
    const words more = flags(hosts, transport);
    line.insert(line.end(), more.begin(), more.end());
    command c(line, from_hub());
    EXPECT_EQ(c.wait(), 0) << c.err();
    EXPECT_EQ(c.err(), "");
    EXPECT_EQ(c.processes_left(), 0);
    return c.out();
  }
  static void expect_ok(int hosts, const std::string& what, const std::string& transport = "auto") {
    launch_test::expect_ok(
        launch_test::run(flags(hosts, transport), {"--strata-networks=auto", what}), from_hub());
  }
  // The row of the table for two nodes; empty: there is none.
  static std::string row(const std::string& all, int from, int to) {
    std::istringstream rows(all);
    for (std::string one; std::getline(rows, one);) {
      std::istringstream columns(one);
      int a = -1, b = -1;
      if (columns >> a >> b && a == from && b == to) return one;
    }
    return {};
  }
};

// Of the first three every two share a network.
class circle_of_hosts : public chain_of_hosts {
 protected:
  void SetUp() override {
    chain_of_hosts::SetUp();
    if (!IsSkipped()) lay(1, 3, "cable4");
  }
  // A fraction of what the others reach under ThreadSanitizer on a busy machine, over UDP too.
  static void make_slow(int host, int other, const std::string& cable) {
    for (const int h : {host, other}) make_slow_from(h, cable);
  }
  static void make_slow_from(int host, const std::string& cable) {
    if (!shell("ip netns exec " + address(host) + " tc qdisc add dev " + cable +
               " root tbf rate 2mbit burst 16kb latency 200ms"))
      GTEST_SKIP() << "this system does not let us slow a cable down (tc, tbf)";
  }
  static constexpr const char* circle = "192.168.1.0/24,192.168.2.0/24,192.168.4.0/24";
  static std::string hosts() { return address(1) + "," + address(2) + "," + address(3); }
  static void make_fast(int host, int other, const std::string& cable) {
    for (const int h : {host, other})
      shell("ip netns exec " + address(h) + " tc qdisc del dev " + cable + " root");
  }
  // The table of ways.
  static std::string table(const std::string& transport = "auto") {
    command c({"info", "--routes", "-n", "3", "--transport", transport, "--host", hosts(),
               "--networks", circle},
              from_hub());
    EXPECT_EQ(c.wait(), 0) << c.err();
    EXPECT_EQ(c.processes_left(), 0);
    return c.out();
  }
  static void expect_ok(const std::string& what, const std::string& transport = "auto") {
    launch_test::expect_ok(
        launch_test::run({"-n", "3", "--transport", transport, "--host", hosts()},
                         {std::string("--strata-networks=") + circle, what}),
        from_hub());
  }
};

// Where they choose, which is TCP, and over UDP.
template <class Hosts>
class by_transport : public Hosts, public testing::WithParamInterface<const char*> {
 protected:
  static std::string name() {
    const std::string asked = by_transport::GetParam();
    return asked == "auto" ? "tcp" : asked;
  }
  static words job(const std::string& nodes, const words& actions) {
    return run({"-n", nodes, "--transport", by_transport::GetParam(), "--host", Hosts::all_hosts()},
               actions);
  }
};
// What three networks may be, one after the other.
struct three_kinds {
  const char* first;
  const char* second;
  const char* third;
};
inline std::string name_of_kinds(const testing::TestParamInfo<three_kinds>& info) {
  return std::string(info.param.first) + "_" + info.param.second + "_" + info.param.third;
}
// Sockets, and UCX where it is built in, which every test of kinds is about.
#if defined(STRATA_HAS_UCX)
inline const auto different_kinds =
    testing::Values(three_kinds{"ucx", "tcp", "udp"}, three_kinds{"tcp", "udp", "ucx"});
#else
inline const auto different_kinds = testing::Values(three_kinds{"udp", "tcp", "udp"});
#endif
// Each sanitizer sees the ways between the networks over one of the two; the transports themselves
// are seen by both elsewhere.
#if defined(STRATA_ASAN)
inline const auto transports_over_networks = testing::Values("udp");
#elif defined(STRATA_TSAN)
inline const auto transports_over_networks = testing::Values("auto");
#else
inline const auto transports_over_networks = testing::Values("auto", "udp");
#endif
inline std::string name_of_transport(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

}  // namespace launch_test
