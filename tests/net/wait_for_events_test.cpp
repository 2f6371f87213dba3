// SPDX-License-Identifier: Apache-2.0
#include "net/wait_for_events.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>
#include <thread>

#include "../common/denied_calls.hpp"
#include "net/doorbell.hpp"
#include "os/clock.hpp"

namespace strata::net {
namespace {

void expect_events() {
  doorbell bell;
  const os::descriptor all = epoll_on({bell.get()});
  epoll_event event;
  constexpr std::int64_t short_ns = 1'500'000;
  const std::int64_t begin_ns = os::now_ns();
  EXPECT_EQ(wait_for_events(all.get(), &event, 1, short_ns), 0);
  EXPECT_GE(os::now_ns() - begin_ns, short_ns);
  ASSERT_TRUE(bell.may_sleep());
  ASSERT_TRUE(bell.ring());
  for (const std::int64_t timeout_ns : {std::int64_t{-1}, std::int64_t{0}, short_ns})
    EXPECT_EQ(wait_for_events(all.get(), &event, 1, timeout_ns), 1);
}

TEST(wait_for_events, tells_of_events_and_ends_in_time) { expect_events(); }

// Kernels before Linux 5.11 do not know the call, and containers may be kept from it.
TEST(wait_for_events, does_without_the_call_that_not_all_have) {
  for (const unsigned code : {ENOSYS, EPERM}) {
    bool denied = false;
    std::thread([&] {
      denied = strata::test::deny_calls({SYS_epoll_pwait2}, code);
      if (denied) expect_events();
    }).join();
    if (!denied) GTEST_SKIP() << "no filters of system calls here";
  }
}

}  // namespace
}  // namespace strata::net
