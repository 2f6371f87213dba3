// SPDX-License-Identifier: Apache-2.0
#include "cluster/attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>

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

// Returns when it was found.
std::int64_t find_late(attention& a, std::int64_t at) {
  EXPECT_TRUE(a.workers_go_on(at + attention::late_ns));
  EXPECT_FALSE(a.workers_go_on(at + attention::late_ns + us));
  EXPECT_FALSE(a.workers_look());
  return at + attention::late_ns + us;
}

TEST(attention, is_taken_from_workers_that_do_not_look_for_more_messages_each_time) {
  attention a;
  std::int64_t t = begin_conversation(a, 1'000'000'000);
  for (std::uint32_t kept = attention::keep_min; kept < 2 * attention::keep_max; kept *= 2) {
    t = find_late(a, t);
    for (std::uint32_t i = 0; i < std::min(kept, attention::keep_max); ++i) {
      t += 100 * us;
      a.heard_by_receiver(t);
      ASSERT_FALSE(a.workers_look()) << i << " of " << kept;
    }
    t += 100 * us;
    a.heard_by_receiver(t);
    ASSERT_TRUE(a.workers_look()) << kept;
  }
}

TEST(attention, comes_back_soon_to_workers_that_were_late_once_in_a_while) {
  attention a;
  std::int64_t t = begin_conversation(a, 1'000'000'000);
  for (int time = 0; time < 20; ++time) {
    for (int i = 0; i < 1000; ++i) {
      t += 20 * us;
      a.looked(t, true);
      ASSERT_TRUE(a.workers_go_on(t));
    }
    t = find_late(a, t);
    for (std::uint32_t i = 0; i <= attention::keep_min; ++i) a.heard_by_receiver(t += 100 * us);
    ASSERT_TRUE(a.workers_look());
  }
}

TEST(attention, is_seen_to_the_less_often_the_longer_somebody_looks) {
  attention a;
  std::int64_t t = begin_conversation(a, 1'000'000'000);
  for (int time = 0; time < 2; ++time) {
    std::int64_t slept = 0;
    for (std::int64_t ns = attention::watch_min_ns; ns < 4 * attention::watch_max_ns; ns *= 2) {
      slept = a.watch_ns();
      EXPECT_EQ(slept, std::min(ns, attention::watch_max_ns));
    }
    t = begin_conversation(a, find_late(a, t));
    for (std::uint32_t i = 0; !a.workers_look(); ++i) {
      a.heard_by_receiver(t += 100 * us);
      ASSERT_LT(i, 2 * attention::keep_min);
    }
  }
}

// When the conversation is one: finds each `pause` after the last.
std::int64_t talk_idly(attention& a, std::int64_t at, std::int64_t pause, std::uint32_t finds) {
  for (std::uint32_t i = 0; i < finds; ++i) {
    EXPECT_FALSE(a.heard_by_idle_worker(at)) << i;
    at += pause;
  }
  return at;
}

TEST(attention, goes_to_idle_workers_in_quick_conversations) {
  attention a;
  std::int64_t t = talk_idly(a, 1'000'000'000, 5 * us, attention::quick_min);
  EXPECT_FALSE(a.workers_look());
  EXPECT_TRUE(a.heard_by_idle_worker(t));
  EXPECT_TRUE(a.workers_look());
  for (int i = 0; i < 1000; ++i) {
    a.looked(t += 5 * us, true);
    ASSERT_TRUE(a.workers_go_on(t));
  }
  t = find_late(a, t);
  // As after any worker that was late.
  t = talk_idly(a, t + attention::quick_ns, 5 * us, attention::keep_min);
  EXPECT_FALSE(a.workers_look());
}

TEST(attention, stays_with_the_receivers_while_idle_workers_find_something_now_and_then) {
  attention a;
  talk_idly(a, 1'000'000'000, attention::quick_ns, 10 * attention::quick_min);
  std::int64_t t = 2'000'000'000;
  for (int time = 0; time < 10; ++time) {
    t = talk_idly(a, t, 5 * us, attention::quick_min) + attention::quick_ns;
  }
  EXPECT_FALSE(a.workers_look());
}

}  // namespace
}  // namespace strata::cluster
