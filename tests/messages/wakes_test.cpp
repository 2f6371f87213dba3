// SPDX-License-Identifier: Apache-2.0
// Whom a message wakes on a node that sleeps. On a core that others want it is a receiver, by
// intention (scheduler::stand_in()); so this runs alone.
#include <gtest/gtest.h>

#include <string>

#include "command.hpp"

namespace {

TEST(message_to_a_sleeping_node, wakes_one_thread) {
  for (const char* reception : {"adaptive", "blocking", "polling", "watchdog"}) {
    for (const char* transport : {"shm", "tcp"}) {
      SCOPED_TRACE(std::string(reception) + " over " + transport);
      launch_test::expect_ok(launch_test::run(
          {"-n", "2", "--workers", "1", "--transport", transport},
          {"--strata-spin-us=0", std::string("--strata-reception=") + reception, "wakes-one"}));
    }
  }
}

}  // namespace
