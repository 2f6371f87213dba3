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
};

class huge_messages : public strata::test::several_hosts,
                      public testing::WithParamInterface<huge_way> {};
INSTANTIATE_TEST_SUITE_P(ways, huge_messages,
                         testing::Values(huge_way{"within_a_process", {"-n", "1"}},
                                         huge_way{"within_a_host",
                                                  {"-n", "2", "--transport", "shm"}},
                                         huge_way{"over_tcp",
                                                  {"-n", "2", "--transport", "tcp", "--bind",
                                                   "none", "--host", "127.0.0.2,127.0.0.3"}}),
                         [](const auto& p) { return std::string(p.param.name); });

TEST_P(huge_messages, arrive_whole_or_not_at_all) {
  launch_test::words flags = GetParam().flags;
  flags.insert(flags.end(), {"--workers", "1"});
  launch_test::expect_ok(launch_test::run(flags, {"huge"}), how_);
}

}  // namespace
