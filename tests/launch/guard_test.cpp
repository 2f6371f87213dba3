// SPDX-License-Identifier: Apache-2.0
// A guard that the system refuses.
#include "tools/strata/processes/guard.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <string>
#include <thread>

#include "strata/error.hpp"
#include "tests/common/denied_calls.hpp"

namespace {

// As where a container's limit of processes is 1.
TEST(guard, says_what_to_do_where_there_may_be_no_other_process) {
  const strata::launcher::inherited_state inherited;
  bool denied = false;
  std::string said;
  std::thread([&] {
    denied = strata::test::deny_calls({SYS_clone, SYS_clone3}, EAGAIN);
    if (!denied) return;
    try {
      strata::launcher::start_guard(inherited);
    } catch (const strata::error& refused) {
      said = refused.what();
    }
  }).join();
  if (!denied) GTEST_SKIP() << "no filters of system calls here";
  EXPECT_NE(said.find("; raise the limit of processes"), std::string::npos) << said;
}

}  // namespace
