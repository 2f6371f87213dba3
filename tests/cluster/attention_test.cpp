// SPDX-License-Identifier: Apache-2.0
#include "cluster/engine/attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "cluster/engine/reception_rules.hpp"

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

// It looks all the time while it runs at all. Meanwhile it still says so, and nobody would be woken
// for what comes: the receivers go on watching, and look in its place.
TEST(attention, watches_in_place_of_an_idle_worker_that_has_lost_its_core) {
  attention a;
  std::int64_t t = begin_conversation(a, 1'000'000'000);
  const std::int64_t began = t;
  EXPECT_TRUE(a.workers_go_on(t += attention::late_ns));
  EXPECT_FALSE(a.is_late(t));
  for (int i = 0; i < 10; ++i) {
    t += i == 0 ? us : a.watch_ns(t);
    ASSERT_TRUE(a.workers_go_on(t, true)) << i;
    ASSERT_TRUE(a.is_late(t)) << i;
    ASSERT_EQ(a.watch_ns(t), attention::late_ns) << i;
    a.heard_by_watcher(t);
  }
  EXPECT_GT(t - began, 2 * attention::over_ns);
  // Not for longer than there is a conversation.
  EXPECT_TRUE(a.workers_go_on(t + attention::over_ns, true));
  EXPECT_FALSE(a.workers_go_on(t += attention::over_ns + us, true));
  EXPECT_FALSE(a.workers_look());
}

// What a busy worker has to make good, no idle one does by losing its core.
TEST(attention, keeps_for_as_long_after_an_idle_worker_was_late) {
  attention a;
  std::int64_t t = find_late(a, begin_conversation(a, 1'000'000'000));
  for (std::uint32_t i = 0; i <= attention::keep_min; ++i) a.heard_by_receiver(t += us);
  ASSERT_TRUE(a.workers_look());
  EXPECT_TRUE(a.workers_go_on(t += attention::late_ns + us, true));
  EXPECT_FALSE(a.workers_go_on(t, false));
  for (std::uint32_t i = 0; i < 2 * attention::keep_min; ++i) {
    a.heard_by_receiver(t += us);
    ASSERT_FALSE(a.workers_look()) << i;
  }
  a.heard_by_receiver(t += us);
  EXPECT_TRUE(a.workers_look());
}

// A find that says when it was is not taken for one of the moment in which somebody came to see.
TEST(attention, ends_as_soon_as_the_last_find_that_was_told_is_over) {
  attention a;
  std::int64_t t = begin_conversation(a, 1'000'000'000);
  a.looked(t += 10 * us, true);
  const std::int64_t last = t;
  while (a.workers_go_on(t += 100 * us)) {
    ASSERT_LE(t, last + attention::over_ns);
    a.looked(false);
  }
  EXPECT_LE(t, last + attention::over_ns + 100 * us);
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

// Nobody looks at the others, and somebody may have gone deep into a task.
TEST(attention, is_taken_from_workers_that_look_at_one_of_several_transports_alone) {
  attention a;
  std::int64_t t = begin_conversation(a, 1'000'000'000);
  const std::int64_t began = t;
  while (a.workers_go_on(t)) {
    ASSERT_LE(t, began + attention::late_ns);
    a.looked_nearby(true);
    t += 10 * us;
  }
  EXPECT_FALSE(a.workers_look());
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

// ---- the rules of who looks, with a clock that counts how often it is read ----

class watched_workers {
 public:
  watched_workers() {
    rules.heard_by_receiver(t);
    rules.heard_by_receiver(t += 10 * us);
    watch();
  }
  // A worker looks, so long after the last time.
  void look_nearby(std::int64_t pause, bool finds, std::size_t transports = 1) {
    pass(pause);
    const auto look = [&](unsigned& looks) {
      return [&, finds] {
        ++looks;
        return std::size_t{finds};
      };
    };
    EXPECT_EQ(
        rules.look_nearby(transports, look(near), look(everywhere), [this] { return read(); }),
        std::size_t{finds});
  }
  void look_idly(std::int64_t pause, bool finds) {
    pass(pause);
    rules.looked_idly(finds, [this] { return read(); });
  }

  reception_rules rules{reception::adaptive, 0};
  std::int64_t t = 1'000'000'000;
  unsigned near = 0, everywhere = 0, clock_reads = 0, watches = 0;

 private:
  std::int64_t read() {
    ++clock_reads;
    return t;
  }
  // The receiver comes to see whenever it said that it would, while the workers go on.
  void pass(std::int64_t pause) {
    const std::int64_t end = t + pause;
    for (; watch_at <= end && rules.has_handed_over(); watch()) t = watch_at;
    t = end;
  }
  void watch() {
    ++watches;
    const reception_rules::turn turn = rules.begin_turn(t, false, 0, attention::close_ns);
    if (!turn.looks) watch_at = t + turn.elsewhere_ns;
  }
  std::int64_t watch_at = 0;
};

TEST(reception_rules, read_the_clock_at_one_look_of_many_and_at_what_idle_workers_find) {
  constexpr unsigned looks = 100 * attention::told_every_max;
  for (const bool finds : {false, true}) {
    watched_workers w;
    for (unsigned i = 0; i < looks; ++i) w.look_nearby(us / 10, finds);
    EXPECT_EQ(w.clock_reads, looks / attention::told_every_max);
    EXPECT_EQ(w.near, looks);
    w.clock_reads = 0;
    for (unsigned i = 0; i < looks; ++i) w.look_idly(us / 10, finds);
    EXPECT_EQ(w.clock_reads, finds ? looks : looks / attention::told_every_max);
    EXPECT_TRUE(w.rules.has_handed_over());
  }
}

// However often they look: who watches believes what it is told, and comes as seldom as it may. A
// worker that never said when it looked would have it come every late_ns.
TEST(reception_rules, are_watched_no_more_often_where_looks_are_rare) {
  constexpr std::int64_t most = 80'000 * us;
  for (const bool idly : {false, true}) {
    for (const std::int64_t pause : {us / 5, us, 5 * us, 20 * us, 50 * us, 150 * us}) {
      watched_workers w;
      const auto run = [&] {
        for (std::int64_t passed = 0; passed < most; passed += pause)
          idly ? w.look_idly(pause, passed % (2 * pause) == 0)
               : w.look_nearby(pause, passed % (2 * pause) == 0);
      };
      run();  // the period grows
      const unsigned before = w.watches;
      run();
      EXPECT_LE(w.watches - before, most / attention::watch_max_ns + 2) << pause;
      EXPECT_TRUE(w.rules.has_handed_over()) << pause;
      EXPECT_EQ(w.everywhere, 0U);
    }
  }
}

// Who looks at one of several transports, and finds each answer at once, looks at the others, too.
TEST(reception_rules, have_all_transports_looked_at_by_who_looks_at_one) {
  for (const reception how : {reception::adaptive, reception::polling, reception::watchdog}) {
    reception_rules rules(how, 0);
    unsigned near = 0, everywhere = 0;
    for (unsigned i = 0; i < 10 * attention::told_every_max; ++i) {
      rules.look_nearby(
          2, [&] { return std::size_t{++near != 0}; },
          [&] { return std::size_t{++everywhere != 0}; }, [] { return std::int64_t{0}; });
    }
    EXPECT_EQ(everywhere, 10U);
    EXPECT_EQ(near, 10U * (attention::told_every_max - 1));
  }
  watched_workers w;
  for (unsigned i = 0; i < 10'000; ++i) w.look_nearby(us, true, 2);
  EXPECT_GE(w.everywhere, 10'000 / attention::told_every_max);
  EXPECT_TRUE(w.rules.has_handed_over());
}

// Where that is all that anybody does, and seldom, each of its looks is one at all.
TEST(reception_rules, have_all_transports_looked_at_each_time_where_looks_are_rare) {
  constexpr unsigned looks = 100;
  watched_workers w;
  for (unsigned i = 0; i < looks; ++i) w.look_nearby(attention::late_ns / 2, true, 2);
  EXPECT_GE(w.everywhere, looks - 2);
  EXPECT_TRUE(w.rules.has_handed_over());
}

}  // namespace
}  // namespace strata::cluster
