// SPDX-License-Identifier: Apache-2.0
#include "os/clock.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace {

TEST(clock, never_goes_back) {
  std::int64_t last = strata::os::now_ns();
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t now = strata::os::now_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(clock, ticks_agree_with_nanoseconds) {
  const double ns_per_tick = strata::os::ns_per_tick();
  ASSERT_GT(ns_per_tick, 0);
  // A busy machine may put this thread aside between two readings, so one good try of a few is
  // enough.
  double best = 1;
  for (int i = 0; i < 20 && best > 0.01; ++i) {
    const std::int64_t start_ns = strata::os::now_ns();
    const std::uint64_t start = strata::os::ticks();
    while (strata::os::now_ns() - start_ns < 5'000'000) strata::os::spin_pause();
    const double by_ticks = static_cast<double>(strata::os::ticks() - start) * ns_per_tick;
    const auto by_clock = static_cast<double>(strata::os::now_ns() - start_ns);
    best = std::min(best, std::abs(by_ticks / by_clock - 1));
  }
  EXPECT_LT(best, 0.01);
}

}  // namespace
