// SPDX-License-Identifier: Apache-2.0
// The floating-point environment is read and put back as a whole: modes and what has occurred, for
// both kinds of numbers.
#include "context/floating_point.hpp"

#include <gtest/gtest.h>

#include <cfenv>

namespace strata::detail {
namespace {

class floating_point_test : public ::testing::Test {
 protected:
  void TearDown() override { before_.put(); }
  const floating_point before_ = floating_point::here();
};

// The processor's own, for whoever looks by an instruction of either kind.
template <class Number>
Number minus_third() {
  volatile Number one = 1;
  volatile Number three = 3;
  const volatile Number now = -one / three;
  return now;
}

void begin_anew(int mode, int occurred) {
  std::fesetround(mode);
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(occurred);
}

TEST_F(floating_point_test, comes_back_as_it_was) {
  for (const int mode : {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}) {
    begin_anew(mode, 0);
    const double expected = minus_third<double>();
    const long double long_expected = minus_third<long double>();
    // Not those that some processors tell of together with FE_INEXACT.
    for (const int occurred : {0, FE_INVALID, FE_INVALID | FE_DIVBYZERO}) {
      begin_anew(mode, occurred);
      const floating_point mine = floating_point::here();
      begin_anew(mode == FE_UPWARD ? FE_DOWNWARD : FE_UPWARD, FE_UNDERFLOW);
      mine.put();
      EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), occurred);
      EXPECT_EQ(std::fegetround(), mode);
      EXPECT_EQ(minus_third<double>(), expected);
      EXPECT_EQ(minus_third<long double>(), long_expected);
    }
  }
}

TEST_F(floating_point_test, modes_alone_leave_what_has_occurred) {
  begin_anew(FE_UPWARD, FE_INVALID);
  const floating_point mine = floating_point::here();
  begin_anew(FE_DOWNWARD, FE_DIVBYZERO);
  mine.put_modes();
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), FE_DIVBYZERO);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
}

TEST_F(floating_point_test, is_kept_where_that_is_asked_for) {
  begin_anew(FE_DOWNWARD, 0);
  {
    const own_floating_point<true> kept;
    begin_anew(FE_UPWARD, 0);
  }
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  {
    [[maybe_unused]] const own_floating_point<false> not_kept;
    begin_anew(FE_UPWARD, 0);
  }
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
}

}  // namespace
}  // namespace strata::detail
