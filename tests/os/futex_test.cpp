// SPDX-License-Identifier: Apache-2.0
#include "os/futex.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "os/clock.hpp"

namespace {

using strata::os::blocking_futex_wait;
using strata::os::futex_outcome;
using strata::os::futex_wake;
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

}  // namespace
