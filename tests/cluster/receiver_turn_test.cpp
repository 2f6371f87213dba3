// SPDX-License-Identifier: Apache-2.0
#include "cluster/engine/receiver_turn.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace strata::cluster {
namespace {

using outcome = receiver_turn::outcome;

constexpr std::int64_t us = 1000;

// A receiver whose looks take so long each, and find so many messages.
struct looking_receiver {
  std::int64_t now_ns = 1'000'000'000;
  unsigned clock_reads = 0;
  unsigned looks = 0;

  // The first outcome that is not another look, of at most so many.
  outcome look(receiver_turn& t, std::size_t messages, std::int64_t look_ns, unsigned looks_max) {
    outcome how = outcome::looks_again;
    for (unsigned i = 0; i < looks_max && how == outcome::looks_again; ++i) {
      now_ns += look_ns;
      ++looks;
      how = t.looked(messages, [this] {
        ++clock_reads;
        return now_ns;
      });
    }
    return how;
  }
};

TEST(receiver_turn, ends_at_once_where_nothing_has_come) {
  receiver_turn t(0);
  looking_receiver r;
  t.begin(r.now_ns);
  EXPECT_EQ(r.look(t, 0, us, 1), outcome::ran_dry);
  EXPECT_FALSE(t.has_found());
}

TEST(receiver_turn, looks_again_after_each_message) {
  receiver_turn t(0);
  looking_receiver r;
  t.begin(r.now_ns);
  EXPECT_EQ(r.look(t, 1, us, 10), outcome::looks_again);
  EXPECT_EQ(r.look(t, 0, us, 1), outcome::ran_dry);
  EXPECT_TRUE(t.has_found());
  t.begin(r.now_ns);
  EXPECT_FALSE(t.has_found());
}

// Its neighbours must hear that it lives, however many messages come.
TEST(receiver_turn, is_over_in_time_though_each_look_finds_more) {
  constexpr unsigned many = 1'000'000;
  for (const std::size_t messages : {std::size_t{1}, std::size_t{5}, std::size_t{512}}) {
    receiver_turn t(0);
    looking_receiver r;
    for (int turn = 0; turn < 100; ++turn) {
      const std::int64_t began = r.now_ns;
      t.begin(began);
      EXPECT_FALSE(t.goes_on());
      EXPECT_EQ(r.look(t, messages, us, many), outcome::is_over);
      EXPECT_TRUE(t.goes_on());
      EXPECT_TRUE(t.has_found());
      EXPECT_GE(r.now_ns - began, receiver_turn::turn_ns);
      EXPECT_LE(r.now_ns - began,
                receiver_turn::turn_ns + std::int64_t{receiver_turn::untimed_max} * us);
    }
  }
}

TEST(receiver_turn, reads_the_clock_once_for_many_messages) {
  receiver_turn t(0);
  looking_receiver r;
  t.begin(r.now_ns);
  (void)r.look(t, 1, us / 10, 6'400);
  EXPECT_EQ(r.looks, 6'400U);
  EXPECT_EQ(r.clock_reads, 6'400 / receiver_turn::untimed_max);
}

// One that is told to look for long before it sleeps sees to the rest meanwhile, and sleeps no
// later for it.
TEST(receiver_turn, is_over_in_time_though_it_looks_for_long_in_vain) {
  constexpr std::int64_t spin_ns = 10 * receiver_turn::turn_ns;
  receiver_turn t(spin_ns);
  looking_receiver r;
  const std::int64_t began = r.now_ns;
  unsigned turns = 1;
  t.begin(r.now_ns);
  while (r.look(t, 0, us, 10'000) == outcome::is_over) {
    ++turns;
    t.begin(r.now_ns);
  }
  EXPECT_EQ(turns, 10U);
  EXPECT_EQ(r.now_ns - began, spin_ns);
  EXPECT_FALSE(t.has_found());
}

// What it has found is known until it has run dry.
TEST(receiver_turn, knows_in_the_next_one_what_it_has_found) {
  receiver_turn t(0);
  looking_receiver r;
  t.begin(r.now_ns);
  ASSERT_EQ(r.look(t, 100, receiver_turn::turn_ns, 10), outcome::is_over);
  t.begin(r.now_ns);
  EXPECT_EQ(r.look(t, 0, us, 1), outcome::ran_dry);
  EXPECT_FALSE(t.goes_on());
  EXPECT_TRUE(t.has_found());
}

// One that has left the looking to workers for some time looks as long as any when it is back, and
// has found nothing.
TEST(receiver_turn, begins_anew_after_a_rest) {
  constexpr std::int64_t spin_ns = 10 * us;
  receiver_turn t(spin_ns);
  looking_receiver r;
  t.begin(r.now_ns);
  ASSERT_EQ(r.look(t, 100, receiver_turn::turn_ns, 10), outcome::is_over);
  t.rest();
  EXPECT_FALSE(t.goes_on());
  r.now_ns += 3'000'000'000;
  const std::int64_t began = r.now_ns;
  t.begin(began);
  EXPECT_FALSE(t.has_found());
  EXPECT_EQ(r.look(t, 0, us, 100), outcome::ran_dry);
  EXPECT_EQ(r.now_ns - began, spin_ns);
  EXPECT_FALSE(t.has_found());
}

// However few they were: the clock need not have been read for them.
TEST(receiver_turn, looks_for_more_as_long_after_messages_as_before) {
  constexpr std::int64_t spin_ns = 10 * us;
  for (const unsigned messages : {1U, 100U}) {
    receiver_turn t(spin_ns);
    looking_receiver r;
    t.begin(r.now_ns);
    ASSERT_EQ(r.look(t, 0, us, 9), outcome::looks_again);
    ASSERT_EQ(r.look(t, messages, us, 1), outcome::looks_again);
    const std::int64_t found = r.now_ns;
    EXPECT_EQ(r.look(t, 0, us, 100), outcome::ran_dry);
    EXPECT_GE(r.now_ns - found, spin_ns);
    EXPECT_LE(r.now_ns - found, spin_ns + us);
  }
}

}  // namespace
}  // namespace strata::cluster
