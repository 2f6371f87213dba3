// SPDX-License-Identifier: Apache-2.0
// Whom a message wakes on a node that sleeps. On a core that others want it is a receiver, by
// intention (scheduler::stand_in()); so this runs alone, and says nothing where it is not alone all
// the same.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <string>
#include <thread>

#include "../common/denied_calls.hpp"
#include "command.hpp"

namespace {

// What the program says of a job over `transport`.
std::string measure(const std::string& transport, const std::string& reception) {
  launch_test::command c(
      launch_test::run({"-n", "2", "--workers", "1", "--transport", transport},
                       {"--strata-spin-us=0", "--strata-reception=" + reception, "wakes-one"}));
  EXPECT_EQ(c.wait(), 0) << c.err();
  return c.out();
}
constexpr const char* others_take_the_core = "busy\nok\n";
constexpr const char* waits_for_one_thing = "old kernel\nok\n";

class message_to_a_sleeping_node : public testing::TestWithParam<const char*> {};

TEST_P(message_to_a_sleeping_node, wakes_one_thread) {
  unsigned measured = 0;
  for (const char* reception : {"adaptive", "blocking", "polling", "watchdog"}) {
    SCOPED_TRACE(reception);
    const std::string out = measure(GetParam(), reception);
    if (out == waits_for_one_thing)
      GTEST_SKIP() << "an old kernel, or one that refuses futex_waitv()";
    if (out == others_take_the_core) continue;
    EXPECT_EQ(out, "ok\n");
    ++measured;
  }
  if (measured == 0) GTEST_SKIP() << "others take the cores all the time";
}

INSTANTIATE_TEST_SUITE_P(transports, message_to_a_sleeping_node, testing::Values("shm", "tcp"),
                         [](const auto& p) { return std::string(p.param); });

// Through memory the receiver is woken there, which is not measured; sockets need no such call.
TEST(message_to_a_sleeping_node_of_an_old_kernel, wakes_one_thread_where_it_comes_by_a_socket) {
  bool denied = false;
  std::string by_memory, by_socket;
  // The filter is its own, and that of the jobs it starts.
  std::thread([&] {
    denied = strata::test::deny_calls({SYS_futex_waitv}, ENOSYS);
    if (!denied) return;
    by_memory = measure("shm", "adaptive");
    by_socket = measure("tcp", "adaptive");
  }).join();
  if (!denied) GTEST_SKIP() << "no filters of system calls here";
  EXPECT_EQ(by_memory, waits_for_one_thing);
  EXPECT_TRUE(by_socket == "ok\n" || by_socket == others_take_the_core) << by_socket;
}

}  // namespace
