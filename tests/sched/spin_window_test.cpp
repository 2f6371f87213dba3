// SPDX-License-Identifier: Apache-2.0
#include "sched/spin_window.hpp"

#include <gtest/gtest.h>

namespace {

using strata::detail::spin_window;

TEST(spin_window, stays_while_work_comes_within_it) {
  spin_window w(800);
  for (int i = 0; i < 100; ++i) w.was_idle_for(i % 2 == 0 ? 1 : 800);
  EXPECT_EQ(w.ticks(), 800u);
}

TEST(spin_window, grows_until_it_catches_what_comes_a_little_later) {
  spin_window w(800);
  w.was_idle_for(2000);
  EXPECT_EQ(w.ticks(), 1600u);
  w.was_idle_for(2000);
  EXPECT_EQ(w.ticks(), 3200u);
  w.was_idle_for(2000);
  EXPECT_EQ(w.ticks(), 3200u);
}

TEST(spin_window, shrinks_where_work_is_rare_and_comes_back_to_the_usual_at_once) {
  spin_window w(800);
  for (int i = 0; i < 10; ++i) w.was_idle_for(1'000'000);
  EXPECT_EQ(w.ticks(), 100u);
  w.was_idle_for(150);
  EXPECT_EQ(w.ticks(), 800u);
}

TEST(spin_window, is_short_for_a_while_where_others_wait_for_the_core) {
  spin_window w(800);
  w.others_wait();
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(w.ticks(), 100u);
    w.was_idle_for(2000);
  }
  w.was_idle_for(2000);
  EXPECT_EQ(w.ticks(), 800u);
}

TEST(spin_window, of_nothing_is_nothing) {
  spin_window w(0);
  w.was_idle_for(1);
  w.was_idle_for(0);
  w.others_wait();
  EXPECT_EQ(w.ticks(), 0u);
}

}  // namespace
