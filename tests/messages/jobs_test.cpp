// SPDX-License-Identifier: Apache-2.0
// Messages and calls between nodes, over every transport.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "command.hpp"

namespace {

using launch_test::command;
using launch_test::words;

struct way {
  const char* name;
  const char* nodes;
  const char* transport;
  words settings{};
};

class message_jobs : public testing::TestWithParam<way> {
 protected:
  static void run(const std::string& what) {
    words arguments = GetParam().settings;
    arguments.push_back(what);
    launch_test::expect_ok(
        launch_test::run({"-n", GetParam().nodes, "--transport", GetParam().transport}, arguments));
  }
};

INSTANTIATE_TEST_SUITE_P(
    ways, message_jobs,
    testing::Values(way{"one", "1", "auto"}, way{"shm_2", "2", "shm"}, way{"tcp_3", "3", "tcp"},
                    way{"udp_3", "3", "udp"},
                    way{"polling", "3", "shm", {"--strata-reception=polling"}},
                    way{"two_workers", "2", "shm", {"--strata-workers=2"}},
                    way{"small_sockets", "2", "tcp", {"--strata-socket-bytes=8K"}}),
    [](const auto& p) { return std::string(p.param.name); });
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(ucx, message_jobs, testing::Values(way{"ucx_2", "2", "ucx"}),
                         [](const auto& p) { return std::string(p.param.name); });
#endif

TEST_P(message_jobs, call_on_named_nodes) { run("calls"); }
TEST_P(message_jobs, echo_any_size) { run("echoes"); }
TEST_P(message_jobs, wait_for_a_slow_receiver) { run("slow-receiver"); }
TEST_P(message_jobs, send_on_behind_a_cancelled_one) { run("cancelled-send"); }
TEST_P(message_jobs, share_what_has_a_name) { run("names"); }
TEST_P(message_jobs, keep_the_order_among_many) { run("crowd"); }
TEST_P(message_jobs, make_operations_of_groups) { run("groups"); }
TEST_P(message_jobs, tell_of_groups_that_fail) { run("group-errors"); }
TEST_P(message_jobs, compute_pi_in_a_group) { run("group-example"); }

TEST(message_job, takes_in_what_has_come_while_nobody_else_is_ready) {
  for (const char* what : {"taken-in", "others-go-on"}) {
    launch_test::expect_ok(launch_test::run({"-n", "2", "--workers", "1", "--transport", "shm"},
                                            {"--strata-reception=polling", what}));
  }
}

TEST(message_job, tells_who_waits_of_a_lost_node) {
#if defined(STRATA_HAS_UCX)
  constexpr std::array transports = {"shm", "tcp", "udp", "ucx"};
#else
  constexpr std::array transports = {"shm", "tcp", "udp"};
#endif
  for (const char* transport : transports) {
    for (const char* what : {"lost", "lost-within", "group-loses-a-node"}) {
      command c(launch_test::run({"-n", "3", "--transport", transport}, {what}));
      EXPECT_NE(c.wait(), 0);
      EXPECT_EQ(c.out().substr(0, 5), "told\n") << c.out() << c.err();
      EXPECT_EQ(c.processes_left(), 0);
    }
  }
}

}  // namespace
