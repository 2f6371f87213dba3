// SPDX-License-Identifier: Apache-2.0
// Messages of more bytes than 32 bits count, by every path that copies them in its own way.
#include <gtest/gtest.h>

#include <string>

#include "command.hpp"
#include "several_hosts.hpp"

namespace {

struct huge_way {
  const char* name;
  launch_test::words flags;
  launch_test::words settings{};
};
// A node on each of two hosts.
launch_test::words between_hosts(const char* transport) {
  return {"-n", "2", "--transport", transport, "--bind", "none", "--host", "127.0.0.2,127.0.0.3"};
}

class huge_messages : public strata::test::several_hosts,
                      public testing::WithParamInterface<huge_way> {};
INSTANTIATE_TEST_SUITE_P(ways, huge_messages,
                         testing::Values(huge_way{"within_a_process", {"-n", "1"}},
                                         huge_way{"within_a_host",
                                                  {"-n", "2", "--transport", "shm"}},
                                         huge_way{"over_tcp", between_hosts("tcp")},
                                         huge_way{"over_udp", between_hosts("udp")}),
                         [](const auto& p) { return std::string(p.param.name); });
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(
    ucx, huge_messages,
    testing::Values(huge_way{"in_pieces", between_hosts("ucx"), {"--strata-rendezvous=never"}},
                    // Over sockets nothing else goes by a connection until it is there.
                    huge_way{"in_one",
                             between_hosts("ucx"),
                             {"--strata-rendezvous=always", "--strata-lost-after-ms=300000"}}),
    [](const auto& p) { return std::string(p.param.name); });
#endif

TEST_P(huge_messages, arrive_whole_or_not_at_all) {
  launch_test::words flags = GetParam().flags;
  flags.insert(flags.end(), {"--workers", "1"});
  launch_test::words arguments = GetParam().settings;
  arguments.emplace_back("huge");
  launch_test::expect_ok(launch_test::run(flags, arguments), how_);
}

}  // namespace
