// SPDX-License-Identifier: Apache-2.0
#include "apps/common/progress.hpp"

#include <gtest/gtest.h>

namespace {

TEST(progress_test, durations_in_words) {
  EXPECT_EQ(apps::duration_words(0), "0 s");
  EXPECT_EQ(apps::duration_words(59.4), "59 s");
  EXPECT_EQ(apps::duration_words(72), "1 min 12 s");
  EXPECT_EQ(apps::duration_words(2 * 3600 + 300), "2 h 05 min");
}

TEST(progress_test, silent_without_a_terminal) {
  testing::internal::CaptureStderr();
  {
    apps::progress p("work", 10);
    for (int i = 0; i < 10; ++i) p.add(1);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
