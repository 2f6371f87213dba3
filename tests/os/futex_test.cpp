// SPDX-License-Identifier: Apache-2.0
#include "os/futex.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "os/clock.hpp"

namespace {

using strata::os::blocking_futex_wait;
using strata::os::blocking_futex_wait_as;
using strata::os::blocking_futex_wait_on_two;
using strata::os::can_wait_on_two;
using strata::os::futex_outcome;
using strata::os::futex_wake;
using strata::os::futex_wake_shared;
using strata::os::futex_wake_those;
using strata::os::futex_word;

TEST(futex, does_not_sleep_when_the_word_has_changed) {
  futex_word word{1};
  EXPECT_EQ(blocking_futex_wait(word, 0), futex_outcome::changed);
}

TEST(futex, gives_up_after_the_timeout) {
  futex_word word{0};
  const auto start_ns = strata::os::now_ns();
  // A signal may end a wait early; then the rest is waited for.
  while (blocking_futex_wait(word, 0, 2'000'000) != futex_outcome::timed_out) {
  }
  EXPECT_GE(strata::os::now_ns() - start_ns, 2'000'000);
}

TEST(futex, waking_nobody_wakes_nobody) {
  futex_word word{0};
  EXPECT_EQ(futex_wake(word, 1), 0);
}

TEST(futex, a_waker_that_changes_the_word_first_is_never_missed) {
  futex_word ball{0};  // whose turn it is
  constexpr std::uint32_t rounds = 2000;
  const auto play = [&](std::uint32_t self) {
    for (std::uint32_t turn = self; turn < rounds; turn += 2) {
      for (std::uint32_t seen; (seen = ball.load()) != turn;) blocking_futex_wait(ball, seen);
      ball.store(turn + 1);
      futex_wake(ball, 1);
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  EXPECT_EQ(ball.load(), rounds);
}

// Three sleep on one word, and whose turn it is wakes the next only.
TEST(futex, wakes_the_kind_of_sleepers_that_is_meant) {
  constexpr std::uint32_t players = 3;
  constexpr std::uint32_t rounds = 3000;
  futex_word ball{0};
  const auto play = [&](std::uint32_t self) {
    for (std::uint32_t turn = self; turn < rounds; turn += players) {
      for (std::uint32_t seen; (seen = ball.load()) != turn;)
        blocking_futex_wait_as(1U << self, ball, seen);
      ball.store(turn + 1);
      EXPECT_LE(futex_wake_those(1U << (turn + 1) % players, ball, INT32_MAX), 1);
    }
  };
  std::vector<std::thread> others;
  for (std::uint32_t self = 1; self < players; ++self) others.emplace_back(play, self);
  play(0);
  for (std::thread& t : others) t.join();
  EXPECT_EQ(ball.load(), rounds);
}

TEST(futex, wakes_who_waits_for_one_of_two_words) {
  if (!can_wait_on_two()) GTEST_SKIP() << "needs Linux 5.16";
  constexpr std::uint32_t rounds = 2000;
  futex_word own{0};
  futex_word shared{0};
  futex_word answers{0};
  std::thread waiter([&] {
    for (std::uint32_t round = 0; round < rounds; ++round) {
      while (own.load() + shared.load() == round)
        blocking_futex_wait_on_two(own, round / 2, shared, (round + 1) / 2);
      answers.store(round + 1);
      futex_wake(answers, 1);
    }
  });
  for (std::uint32_t round = 0; round < rounds; ++round) {
    if (round % 2 == 0) {
      shared.store(round / 2 + 1);
      futex_wake_shared(shared, 1);
    } else {
      own.store(round / 2 + 1);
      futex_wake(own, 1);
    }
    while (answers.load() == round) blocking_futex_wait(answers, round);
  }
  waiter.join();
  EXPECT_EQ(own.load() + shared.load(), rounds);
  EXPECT_EQ(blocking_futex_wait_on_two(own, 0, shared, rounds / 2), futex_outcome::changed);
  EXPECT_EQ(blocking_futex_wait_on_two(own, rounds / 2, shared, 0), futex_outcome::changed);
}

}  // namespace
