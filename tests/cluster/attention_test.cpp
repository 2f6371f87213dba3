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
    for (std::int64_t ns = attention::watch_min_ns; ns < 4 * attention::watch_max_ns; ns *= 2) {
      // Until a multiple of it, as all receivers of the host.
      const std::int64_t most = std::min(ns, attention::watch_max_ns);
      const std::int64_t slept = a.watch_ns(t);
      EXPECT_LE(slept, most);
      EXPECT_GT(slept, 0);
      EXPECT_EQ((t + slept) % most, 0);
    }
    t = begin_conversation(a, find_late(a, t));
    for (std::uint32_t i = 0; !a.workers_look(); ++i) {
      a.heard_by_receiver(t += 100 * us);
      ASSERT_LT(i, 2 * attention::keep_min);
    }
  }
}

// Most looks are counted and do not say when they were: who watches comes back soon, so that a
// message waits no longer for a worker that has gone deep into a task than for others.
TEST(attention, sees_that_somebody_looked_without_being_told_when) {
  attention a;
  std::int64_t t = begin_conversation(a, 1'000'000'000);
  for (int i = 0; i < 1000; ++i) {
    a.looked(true);
    t += a.watch_ns(t);
    ASSERT_TRUE(a.workers_go_on(t)) << i;
    const bool was_told = t - 1'000'010'000 <= attention::late_ns;
    if (!was_told) {
      ASSERT_EQ(a.watch_ns(t), attention::late_ns) << i;
    }
  }
  // One has said so for long, and looks once more just after somebody came to see.
  for (int i = 0; i < 10; ++i) {
    t += a.watch_ns(t);
    a.looked(t, true);
    ASSERT_TRUE(a.workers_go_on(t));
  }
  a.looked(true);
  const std::int64_t last = t;
  do {
    t += a.watch_ns(t) + us;
    ASSERT_LE(t, last + attention::late_ns + attention::watch_max_ns + 10 * us);
  } while (a.workers_go_on(t));
  EXPECT_FALSE(a.workers_look());
}

TEST(attention, ends_with_the_conversation_where_looks_are_counted) {
  attention a;
  std::int64_t t = begin_conversation(a, 1'000'000'000);
  a.looked(true);
  EXPECT_TRUE(a.workers_go_on(t += 100 * us));
  const std::int64_t last = t;
  do {
    a.looked(false);
    ASSERT_LT(t, last + 2 * attention::over_ns);
  } while (a.workers_go_on(t += 20 * us));
  EXPECT_FALSE(a.workers_look());
  // Nobody was at fault.
  begin_conversation(a, t + 20 * us);
  EXPECT_TRUE(a.workers_look());
}

// It looks all the time while it runs at all.
TEST(attention, blames_no_idle_worker_that_has_lost_its_core) {
  for (const bool idle : {true, false}) {
    attention a;
    std::int64_t t = begin_conversation(a, 1'000'000'000) + attention::late_ns + us;
    EXPECT_FALSE(a.workers_go_on(t, idle));
    EXPECT_FALSE(a.workers_look());
    a.heard_by_receiver(t += 10 * us);
    EXPECT_EQ(a.workers_look(), idle);
  }
}

// Workers that have looked in time all along are taken at their word.
TEST(attention, is_seen_to_no_more_often_after_a_pause) {
  attention a;
  std::int64_t t = begin_conversation(a, 1'000'000'000);
  for (int i = 0; i < 10; ++i) {
    t += a.watch_ns(t);
    a.looked(t, true);
    ASSERT_TRUE(a.workers_go_on(t));
  }
  a.receivers_look();
  t = begin_conversation(a, t + us);
  EXPECT_EQ((t + a.watch_ns(t)) % attention::watch_max_ns, 0);
}

// Finds so far apart, until the receivers hand over or there have been `most`. Returns how many.
std::uint32_t talk_idly(attention& a, std::int64_t& at, std::int64_t pause, std::uint32_t most) {
  for (std::uint32_t i = 1; i <= most; ++i) {
    if (a.heard_by_idle_worker(at += pause)) return i;
    EXPECT_FALSE(a.workers_look());
  }
  return most;
}

TEST(attention, goes_to_idle_workers_in_quick_conversations) {
  attention a;
  std::int64_t t = 1'000'000'000;
  EXPECT_EQ(talk_idly(a, t, 5 * us, 1000), attention::quick_min);
  EXPECT_TRUE(a.workers_look());
  for (int i = 0; i < 1000; ++i) {
    a.looked(t += 5 * us, true);
    ASSERT_TRUE(a.workers_go_on(t));
  }
  // One that was late is a worker like others.
  t = find_late(a, t);
  EXPECT_EQ(talk_idly(a, t, 5 * us, 1000), attention::keep_min + 1);
  EXPECT_TRUE(a.workers_look());
}

TEST(attention, comes_back_from_idle_workers_that_fall_asleep) {
  attention a;
  std::int64_t t = 1'000'000'000;
  EXPECT_FALSE(a.idle_worker_sleeps());
  EXPECT_EQ(talk_idly(a, t, 5 * us, 1000), attention::quick_min);
  EXPECT_TRUE(a.idle_worker_sleeps());
  EXPECT_FALSE(a.workers_look());
  EXPECT_FALSE(a.idle_worker_sleeps());
  // Nobody was at fault.
  EXPECT_EQ(talk_idly(a, t, 5 * us, 1000), attention::quick_min);
  // What busy workers look after is not given up because an idle one sleeps.
  a.receivers_look();
  begin_conversation(a, t + attention::close_ns);
  EXPECT_FALSE(a.idle_worker_sleeps());
  EXPECT_TRUE(a.workers_look());
}

TEST(attention, stays_with_the_receivers_while_idle_workers_find_something_now_and_then) {
  attention a;
  std::int64_t t = 1'000'000'000;
  talk_idly(a, t, attention::quick_ns, 10 * attention::quick_min);
  for (int time = 0; time < 10; ++time) {
    t += attention::quick_ns;
    talk_idly(a, t, 5 * us, attention::quick_min - 1);
  }
  EXPECT_FALSE(a.workers_look());
}

}  // namespace
}  // namespace strata::cluster
