// SPDX-License-Identifier: Apache-2.0
// A node that goes, and a computation that does not: always an end or a word, never a mystery.
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "../common/slow_builds.hpp"
#include "command.hpp"

namespace {

using launch_test::command;
using launch_test::contains;

class losses : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(transports, losses, testing::Values("shm", "tcp", "udp"),
                         [](const auto& p) { return std::string(p.param); });
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(ucx, losses, testing::Values("ucx"),
                         [](const auto& p) { return std::string(p.param); });
#endif

TEST_P(losses, of_a_killed_node_are_errors_that_name_it) {
  command c(launch_test::run({"-n", "3", "--transport", GetParam()}, {"kill"}));
  EXPECT_EQ(c.wait(), 137);
  EXPECT_NE(c.out().find("caught: node 1 is lost"), std::string::npos) << c.out();
  EXPECT_TRUE(contains(c.out(), "\nok\n")) << c.out() << c.err();
  EXPECT_NE(c.err().find("node 1"), std::string::npos) << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_P(losses, of_a_node_that_leaves_early_too) {
  command c(launch_test::run({"-n", "2", "--transport", GetParam()}, {"leave"}));
  EXPECT_NE(c.wait(), 0);
  EXPECT_NE(c.out().find("caught: node 1 is lost"), std::string::npos) << c.out();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_P(losses, of_a_thief_with_a_token_in_its_hands_too) {
  for (const char* const what : {"kill-thief", "kill-caller"}) {
    command c(launch_test::run({"-n", "2", "--workers", "1", "--transport", GetParam()}, {what}));
    EXPECT_EQ(c.wait(), 137);
    EXPECT_NE(c.out().find("caught: node 1 is lost"), std::string::npos) << c.out() << c.err();
    EXPECT_TRUE(contains(c.out(), "\nok\n")) << c.out() << c.err();
    EXPECT_EQ(c.processes_left(), 0);
  }
}

// By themselves, and not because the launcher has stopped them.
TEST_P(losses, are_heard_of_by_who_only_sends) {
  command c(launch_test::run({"-n", "2", "--transport", GetParam()}, {"kill-receiver"}));
  EXPECT_EQ(c.wait(), 137);
  EXPECT_EQ(launch_test::count_lines(c.out()), 8U) << c.out() << c.err();
  EXPECT_EQ(c.out().rfind("caught: node 1 is lost", 0), 0U) << c.out();
  EXPECT_TRUE(contains(c.out(), "\nok\n")) << c.out() << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_P(losses, of_a_victim_too) {
  command c(
      launch_test::run({"-n", "3", "--workers", "1", "--transport", GetParam()}, {"kill-victim"}));
  EXPECT_EQ(c.wait(), 137);
  EXPECT_NE(c.out().find("caught: node 1 is lost"), std::string::npos) << c.out() << c.err();
  EXPECT_TRUE(contains(c.out(), "\nok\n")) << c.out() << c.err();
  // Only the launcher says it, and the program if it likes.
  EXPECT_EQ(c.err().find("nobody waited"), std::string::npos) << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_P(losses, of_a_node_end_the_wait_for_quiet_too) {
  command c(launch_test::run({"-n", "3", "--transport", GetParam()}, {"kill-under-wait-idle"}));
  EXPECT_EQ(c.wait(), 137);
  EXPECT_EQ(launch_test::count_lines(c.out()), 3U) << c.out();
  EXPECT_EQ(c.out().rfind("caught: node 1 is lost", 0), 0U) << c.out();
  EXPECT_TRUE(contains(c.out(), "\nok\n")) << c.out();
  EXPECT_TRUE(contains(c.err(), "strata run: node 1 was killed")) << c.err();
  EXPECT_FALSE(contains(c.err(), "nobody waited")) << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

// The launcher sees its end, and those who wait for it need not.
TEST(loss, of_a_node_that_never_connects_ends_the_joining_of_the_others) {
  command c(launch_test::run({"-n", "3", "--transport", "udp"}, {"dies-before-it-connects"}));
  EXPECT_NE(c.wait(), 0);
  // By themselves, and not because the launcher has stopped them.
  EXPECT_TRUE(contains(c.out(), "not ok: node 1 is lost: was killed by signal 9 (SIGKILL)\n"))
      << c.out() << c.err();
  EXPECT_TRUE(contains(c.err(), "strata run: node 1 was killed by signal 9")) << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

// Through shared memory, because a connection would be closed when the launcher kills the node.
TEST(loss, of_a_silent_node_is_noticed) {
  command c(launch_test::run({"-n", "2"}, {"--strata-lost-after-ms=1000", "stop"}));
  EXPECT_TRUE(c.wait_for_output("caught: node 1 is lost: silent for 1000 ms\n"))
      << c.out() << c.err();
  // The launcher would end a stopped process by itself, some time (a_stopped_node).
  c.signal(SIGINT);
  EXPECT_EQ(c.wait(), 128 + SIGINT) << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

// The next one in the ring hears nothing else of it, and the others have its receiver never find an
// end.
TEST(loss, is_not_believed_of_a_node_that_is_kept_busy) {
  // With sanitizers it is there only for races: the limit is longer than the node is kept busy.
  const bool is_slow = strata::test::thread_sanitizer || strata::test::address_sanitizer;
  const std::string limit = is_slow ? "15000" : "1000";
  launch_test::expect_ok(launch_test::run(
      {"-n", "5", "--workers", "1", "--transport", "shm"},
      {"--strata-reception=blocking", "--strata-lost-after-ms=" + limit, "keep-busy"}));
}

}  // namespace
