// SPDX-License-Identifier: Apache-2.0
#include "net/doorbell.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

namespace strata::net {
namespace {

bool is_readable(const doorbell& bell) {
  pollfd one{bell.get(), POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

TEST(doorbell, wakes_who_sleeps_and_keeps_awake_who_is_about_to) {
  doorbell bell;
  EXPECT_FALSE(bell.ring());
  EXPECT_FALSE(bell.may_sleep());
  ASSERT_TRUE(bell.may_sleep());
  EXPECT_FALSE(is_readable(bell));
  EXPECT_TRUE(bell.ring());
  EXPECT_FALSE(bell.ring());
  EXPECT_TRUE(is_readable(bell));
  bell.awake();
  ASSERT_TRUE(bell.may_sleep());
  EXPECT_FALSE(is_readable(bell));
}

// The sleeper may wake up for another reason between the two steps of a ring: what is written then
// ends one later sleep, not all of them.
TEST(doorbell, a_late_ring_is_not_heard_for_ever) {
  doorbell bell;
  std::atomic<bool> over{false};
  std::thread ringer([&] {
    while (!over.load()) bell.ring();
  });
  for (int i = 0; i < 50'000; ++i) {
    if (bell.may_sleep()) bell.awake();
  }
  over.store(true);
  ringer.join();
  while (!bell.may_sleep()) {
  }
  bell.awake();
  ASSERT_TRUE(bell.may_sleep());
  EXPECT_FALSE(is_readable(bell));
}

}  // namespace
}  // namespace strata::net
