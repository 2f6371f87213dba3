// SPDX-License-Identifier: Apache-2.0
#include "cluster/attention.hpp"

#include <gtest/gtest.h>

namespace strata::cluster {
namespace {

constexpr std::int64_t us = 1000;

// At which time a receiver hears the second of two messages.
std::int64_t begin_conversation(attention& a, std::int64_t at) {
  a.heard_by_receiver(at);
  a.heard_by_receiver(at + 10 * us);
  return at + 10 * us;
}

TEST(attention, stays_with_the_receivers_while_messages_are_few) {
  attention a;
  for (std::int64_t t = 0; t < 100 * attention::close_ns; t += attention::close_ns) {
    a.heard_by_receiver(t);
    EXPECT_FALSE(a.workers_look());
    EXPECT_FALSE(a.workers_go_on(t));
  }
}

TEST(attention, goes_to_workers_that_look_in_time_until_messages_end) {
  attention a;
  std::int64_t t = begin_conversation(a, 1'000'000'000);
  EXPECT_TRUE(a.workers_look());
  for (int i = 0; i < 1000; ++i) {
    t += 20 * us;
    a.looked(t, i % 10 == 0);
    EXPECT_TRUE(a.workers_go_on(t + 10 * us));
  }
  bool goes_on = true;
  const std::int64_t last = t;
  while (goes_on) {
    t += 20 * us;
    ASSERT_LT(t, last + 2 * attention::over_ns);
    a.looked(t, false);
    goes_on = a.workers_go_on(t);
  }
  EXPECT_FALSE(a.workers_look());
  // Nobody was at fault: the next conversation begins as this one did.
  begin_conversation(a, t + 20 * us);
  EXPECT_TRUE(a.workers_look());
}

TEST(attention, is_taken_from_workers_that_do_not_look_for_longer_each_time) {
  attention a;
  std::int64_t t = 1'000'000'000;
  std::int64_t kept = 0;
  for (int time = 0; time < 5; ++time) {
    t = begin_conversation(a, t);
    ASSERT_TRUE(a.workers_look());
    EXPECT_TRUE(a.workers_go_on(t + attention::watch_ns));
    t += attention::watch_ns + us;
    EXPECT_FALSE(a.workers_go_on(t));
    EXPECT_FALSE(a.workers_look());
    const std::int64_t since = t;
    while (!a.workers_look()) {
      t += 100 * us;
      a.heard_by_receiver(t);
      ASSERT_LT(t, since + 2 * attention::keep_max_ns);
    }
    EXPECT_GE(t - since, std::max(2 * kept - 200 * us, attention::keep_min_ns));
    kept = t - since;
    a.receivers_look();
    t += 100 * us;
  }
}

TEST(attention, comes_back_soon_to_workers_that_were_late_once_in_a_while) {
  attention a;
  std::int64_t t = 1'000'000'000;
  for (int time = 0; time < 20; ++time) {
    t = begin_conversation(a, t);
    ASSERT_TRUE(a.workers_look());
    for (int i = 0; i < 1000; ++i) {
      t += 20 * us;
      a.looked(t, true);
      ASSERT_TRUE(a.workers_go_on(t));
    }
    t += attention::watch_ns + us;
    EXPECT_FALSE(a.workers_go_on(t));
    t += attention::keep_min_ns;
  }
}

}  // namespace
}  // namespace strata::cluster
