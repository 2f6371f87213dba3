// SPDX-License-Identifier: Apache-2.0
// What tests of threads share.
#pragma once
#include <gtest/gtest.h>

#include <stdexcept>
#include <system_error>

namespace strata::test {

template <class F>
void expect_code(std::errc wanted, F f) {
  try {
    f();
    ADD_FAILURE() << "no exception";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::make_error_code(wanted)) << e.what();
  }
}

// `moves` from now.
struct refuses_to_move {
  int moves;
  explicit refuses_to_move(int n) : moves(n) {}
  refuses_to_move(const refuses_to_move& other) : moves(other.moves - 1) {
    if (moves < 0) throw std::runtime_error("move");
  }
  void operator()() const {}
};

}  // namespace strata::test
