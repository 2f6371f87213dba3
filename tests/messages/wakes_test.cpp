// SPDX-License-Identifier: Apache-2.0
// Whom a message wakes on a node that sleeps. On a core that others want it is a receiver, by
// intention (scheduler::stand_in()); so this runs alone, and says nothing where it is not alone all
// the same.
#include <gtest/gtest.h>

#include <string>

#include "command.hpp"

namespace {

TEST(message_to_a_sleeping_node, wakes_one_thread) {
  unsigned measured = 0;
  for (const char* reception : {"adaptive", "blocking", "polling", "watchdog"}) {
    for (const char* transport : {"shm", "tcp"}) {
      SCOPED_TRACE(std::string(reception) + " over " + transport);
      launch_test::command c(launch_test::run(
          {"-n", "2", "--workers", "1", "--transport", transport},
          {"--strata-spin-us=0", std::string("--strata-reception=") + reception, "wakes-one"}));
      EXPECT_EQ(c.wait(), 0) << c.err();
      if (c.out() == "busy\nok\n") continue;
      EXPECT_EQ(c.out(), "ok\n") << c.err();
      ++measured;
    }
  }
  if (measured == 0) GTEST_SKIP() << "others take the cores all the time";
}

}  // namespace
