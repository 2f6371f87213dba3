// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <span>

#include "strata/message.hpp"

namespace strata::test {

// It is over, whatever it was: nothing can be asked of it any more.
inline void expect_used(transfer& t) {
  EXPECT_FALSE(t.valid());
  EXPECT_THROW((void)t.test(), misuse_error);
  EXPECT_THROW((void)t.wait(), misuse_error);
  EXPECT_THROW((void)t.wait_for(std::chrono::seconds(1)), misuse_error);
  EXPECT_THROW((void)t.cancel(), misuse_error);
  EXPECT_THROW((void)wait_any(std::span(&t, 1)), misuse_error);
  EXPECT_NO_THROW(wait_all(std::span(&t, 1)));  // passes over it
}

}  // namespace strata::test
