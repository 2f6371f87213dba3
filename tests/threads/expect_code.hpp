// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include "strata/future.hpp"

namespace strata::test {

template <class F>
void expect_code(future_errc wanted, F f) {
  try {
    f();
    ADD_FAILURE() << "no exception";
  } catch (const future_error& e) {
    EXPECT_EQ(e.code(), wanted) << e.what();
  }
}

}  // namespace strata::test
