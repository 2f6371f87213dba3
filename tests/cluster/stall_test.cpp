// SPDX-License-Identifier: Apache-2.0
// Who waits for what, on every node: asked for by a signal, or because nothing moves.
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "../common/slow_builds.hpp"
#include "command.hpp"

namespace {

using launch_test::command;
using launch_test::contains;
using launch_test::words;

struct wait_case {
  const char* action;
  const char* said;
};

void PrintTo(const wait_case& w, std::ostream* out) { *out << w.action; }

class stalls : public testing::TestWithParam<wait_case> {};
INSTANTIATE_TEST_SUITE_P(
    waits, stalls,
    testing::Values(wait_case{"stall", "a task waits for a completion that awaits 3 signals"},
                    wait_case{"stall-in-receive", "waits for message"},
                    wait_case{"stall-in-semaphore", "waits for semaphore: \"stuck\""},
                    wait_case{"stall-for-a-name", "\"thread 0 of run_group()\""},
                    wait_case{"stall-elsewhere", "a call is awaited from node 1"}));

// The job goes on waiting: somebody may want to look at it with a debugger.
TEST_P(stalls, are_told_after_a_while_with_what_is_waited_for) {
  command c(launch_test::run({"-n", "2"}, {"--strata-stall-s=1", GetParam().action}));
  ASSERT_TRUE(c.wait_for_error_output("strata: node 1 of 2")) << c.err();
  EXPECT_TRUE(contains(c.err(), "nothing moves on any node any more")) << c.err();
  EXPECT_TRUE(contains(c.err(), GetParam().said)) << c.err();
  // Frames that messages brought count as well as those that they took.
  EXPECT_FALSE(contains(c.err(), "alive: -")) << c.err();
}

words alone(const words& arguments) {
  words all = {launch_test::node_program(), "%m"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

// Where no thread keeps the time.
class lone_stalls : public testing::TestWithParam<wait_case> {};
INSTANTIATE_TEST_SUITE_P(
    waits, lone_stalls,
    testing::Values(wait_case{"stall", "a task waits for a completion that awaits 3 signals"},
                    wait_case{"stall-in-receive", "waits for message"},
                    wait_case{"stall-in-send", "1 message of 1048576 bytes waits at endpoint"},
                    wait_case{"stall-in-semaphore", "waits for semaphore: \"stuck\""},
                    wait_case{"stall-for-a-name",
                              "nobody has published the name \"nobody has it\", "
                              "for which 1 thread or task waits"}));

void expect_report(command& c) {
  ASSERT_TRUE(c.wait_for_error_output(lone_stalls::GetParam().said)) << c.err();
  EXPECT_TRUE(contains(c.err(), "nothing moves any more")) << c.err();
}

TEST_P(lone_stalls, are_told_under_the_launcher) {
  command c(launch_test::run({"-n", "1"}, {"--strata-stall-s=1", GetParam().action}));
  expect_report(c);
}

TEST_P(lone_stalls, are_told_without_one) {
  command c(alone({"--strata-stall-s=1", GetParam().action}), {.other = true});
  expect_report(c);
}

void expect_report_on_signal(command& c) {
  ASSERT_TRUE(c.wait_for_output("waits"));
  c.signal(SIGQUIT);
  ASSERT_TRUE(c.wait_for_error_output("a task waits for a completion that awaits 3 signals"));
  EXPECT_FALSE(contains(c.err(), "nothing moves")) << c.err();
  c.signal(SIGTERM);
  EXPECT_EQ(c.wait(), 128 + SIGTERM) << c.err();
}

TEST(a_signal_to_one_process, makes_it_tell_and_go_on) {
  if (strata::test::thread_sanitizer) GTEST_SKIP() << "it hands signals on at calls of its own";
  for (const char* const workers : {"1", "3"}) {
    const words arguments = {"--strata-stall-s=0", "--strata-workers", workers, "stall"};
    command launched(launch_test::run({"-n", "1"}, arguments));
    expect_report_on_signal(launched);
    command by_itself(alone(arguments), {.other = true});
    expect_report_on_signal(by_itself);
  }
}

void expect_three_reports(command& c) {
  for (const char* const node : {"node 0 of 3", "node 1 of 3", "node 2 of 3"})
    ASSERT_TRUE(c.wait_for_error_output("strata: " + std::string(node))) << c.err();
}

TEST(a_signal_to_the_launcher, makes_every_node_tell_and_the_job_goes_on) {
  command c(launch_test::run({"-n", "3"}, {"--strata-stall-s=0", "stall"}));
  ASSERT_TRUE(c.wait_for_output("waits"));
  c.signal(SIGQUIT);
  expect_three_reports(c);
  EXPECT_FALSE(contains(c.err(), "nothing moves")) << c.err();
  c.signal(SIGTERM);
  EXPECT_EQ(c.wait(), 128 + SIGTERM) << c.err();
}

TEST(a_signal_to_one_node, makes_every_node_tell) {
  command c(launch_test::run({"-n", "3"}, {"--strata-stall-s=0", "ask-and-stall"}));
  expect_three_reports(c);
}

// Who waits for room looks for messages itself then, and nobody else does.
TEST(silence, is_noticed_by_who_polls_and_waits_for_room) {
  command c(launch_test::run(
      {"-n", "2", "--transport", "shm"},
      {"--strata-reception=polling", "--strata-lost-after-ms=1000", "flood-stopped"}));
  EXPECT_TRUE(c.wait_for_output("caught: node 1 is lost: silent for 1000 ms\n"))
      << c.out() << c.err();
  // The launcher would end a stopped process by itself, some time (a_stopped_node).
  c.signal(SIGINT);
  EXPECT_EQ(c.wait(), 128 + SIGINT) << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

}  // namespace
