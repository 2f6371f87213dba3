// SPDX-License-Identifier: Apache-2.0
// Jobs on a host where something that hosts have plenty of is used up.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "command.hpp"

namespace {

using launch_test::command;
using launch_test::contains;
using launch_test::words;

// A host of its own for the command, once this has been done to it.
words host_where(const words& namespaces, const std::string& happens) {
  words around{"unshare"};
  around.insert(around.end(), namespaces.begin(), namespaces.end());
  around.insert(around.end(), {"sh", "-c", happens + " && exec \"$0\" \"$@\""});
  return around;
}

bool can_be(const words& around) {
  command c({"true"}, {.around = around, .other = true});
  return c.wait() == 0;
}

// All ports that the system would choose from are spoken for.
const words without_ports =
    host_where({"-n"},
               "ip link set lo up && echo 40000 40001 > /proc/sys/net/ipv4/ip_local_port_range && "
               "echo 40000-40001 > /proc/sys/net/ipv4/ip_local_reserved_ports");

const words without_shared_files =
    host_where({"-m"},
               "mount -t tmpfs -o size=4k none /dev/shm && echo full > /dev/shm/file && "
               "! dd if=/dev/zero of=/dev/shm/more bs=4k count=2 2> /dev/null");

class ports : public testing::TestWithParam<const char*> {};
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(transports, ports, testing::Values("tcp", "udp", "ucx"));
#else
INSTANTIATE_TEST_SUITE_P(transports, ports, testing::Values("tcp", "udp"));
#endif

TEST_P(ports, that_are_used_up_are_named_once) {
  if (!can_be(without_ports)) GTEST_SKIP() << "no network namespaces here: this needs root";
  command c(launch_test::run({"-n", "2", "--transport", GetParam()}, {"tokens"}),
            {.around = without_ports});
  EXPECT_EQ(c.wait(), 1);
  EXPECT_EQ(c.out(),
            "not ok: cannot listen on 127.0.0.1: no port is free there; end programs that hold "
            "ports, or widen net.ipv4.ip_local_port_range (sysctl)\n");
  EXPECT_EQ(c.err(), "");
  EXPECT_EQ(c.processes_left(), 0);
}

TEST(ports, are_not_needed_where_nodes_share_memory) {
  if (!can_be(without_ports)) GTEST_SKIP() << "no network namespaces here: this needs root";
  launch_test::expect_ok(launch_test::run({"-n", "2"}, {"tokens"}), {.around = without_ports});
}

TEST(shared_memory, is_not_that_of_a_full_dev_shm) {
  if (!can_be(without_shared_files)) GTEST_SKIP() << "no mounts here: this needs root";
  for (const char* const transport : {"shm", "auto"}) {
    command c(launch_test::run({"-n", "2", "--transport", transport}, {"--strata-stats", "tokens"}),
              {.around = without_shared_files});
    EXPECT_EQ(c.wait(), 0) << c.err();
    EXPECT_EQ(c.out(), "ok\n");
    EXPECT_TRUE(contains(c.err(), "1 by shm")) << c.err();
  }
}

}  // namespace
