// SPDX-License-Identifier: Apache-2.0
// Jobs on a host where something that hosts have plenty of is used up.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "../common/slow_builds.hpp"
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

// Each thread of a node in turn, but for the first, which is its worker; or some of them, where a
// job makes many before all have joined, and the launcher waits a second for more to fail.
struct job_kind {
  const char *name, *transport, *setting;
  unsigned step = 1;
};
class threads : public testing::TestWithParam<job_kind> {};
INSTANTIATE_TEST_SUITE_P(jobs, threads,
                         testing::Values(job_kind{"shm", "shm", "--strata-shelf=8"},
                                         job_kind{"tcp", "tcp", "--strata-shelf=8"},
                                         job_kind{"udp", "udp", "--strata-shelf=8"},
                                         job_kind{"networks", "tcp",
                                                  "--strata-networks=127.0.0.0/8,udp:127.0.0.0/8",
                                                  3}),
                         [](const auto& p) { return std::string(p.param.name); });

TEST_P(threads, that_are_refused_are_named_once) {
  if (strata::test::thread_sanitizer || strata::test::address_sanitizer)
    GTEST_SKIP() << "threads are the sanitizer's to refuse";
  for (const char* const node : {"0", "1"}) {
    unsigned refused = 0;
    for (;; refused += GetParam().step) {
      command c(launch_test::run(
          {"-n", "2", "--workers", "1", "--transport", GetParam().transport},
          {GetParam().setting, node, std::to_string(refused + 2), "without-a-thread"}));
      const int status = c.wait();
      EXPECT_EQ(c.processes_left(), 0);
      if (status == 0) break;
      EXPECT_EQ(status, 1);
      const std::string what = std::string("not ok: cannot make a thread of node ") + node +
                               ": Resource temporarily unavailable; raise the limits of processes "
                               "and of memory (ulimit -u, ulimit -v, or the container's)\n";
      const std::size_t said_at = c.out().find(what);
      EXPECT_NE(said_at, std::string::npos) << c.out();
      EXPECT_EQ(c.out().find("cannot make a thread", said_at + what.size()), std::string::npos);
      // Of another node than the first the launcher says so, too, unless all end by themselves.
      if (!c.err().empty()) {
        EXPECT_STREQ(node, "1");
        EXPECT_EQ(c.err().rfind("strata run: node 1 ended with status 1 before ", 0), 0U)
            << c.err();
        EXPECT_EQ(launch_test::count_lines(c.err()), 1U) << c.err();
      }
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GE(refused, 3U) << "two for a transport, one for the launcher's line";
  }
}

}  // namespace
