// SPDX-License-Identifier: Apache-2.0
// A sync slot fires exactly once a round, and the fiber that it fires sees what every signaller
// wrote.
#include "mutations.hpp"
#include "slot_model.hpp"

namespace strata::model {
namespace {

TEST(slot, fires_once_a_round) {
  expect_correct_at_random<slot_rounds<2, 2>>(100);
  expect_correct_at_random<slot_rounds<3, 2>>(100);
  expect_correct_always<slot_rounds<2, 1>>(6);
  expect_correct_always<slot_rounds<2, 2>>(3);
  expect_correct_always<slot_rounds<3, 1>>(3);
}

TEST(slot, counts_signals_that_wait_for_nobody) {
  expect_correct_at_random<slot_flood<2, 3, 2>>(100);
  expect_correct_at_random<slot_flood<3, 2, 1>>(100);
  expect_correct_at_random<slot_flood<3, 3, 4>>(100);
}

TEST(slot, reports_a_signal_too_many) {
  expect_correct_at_random<slot_excess<2>>(100);
  expect_correct_at_random<slot_excess<3>>(100);
  expect_correct_always<slot_excess<3>>(3);
}

TEST(slot, increment_is_in_time_or_says_so) {
  expect_correct_at_random<slot_increment<>>(100);
  expect_correct_always<slot_increment<>>(8);
}

TEST(slot, fires_or_is_closed) {
  expect_correct_at_random<slot_closing<2>>(100);
  expect_correct_at_random<slot_closing<3>>(100);
  expect_correct_always<slot_closing<3>>(3);
}

TEST(slot_mutation, relaxed_signals_hide_data) {
  expect_failure<slot_rounds<2, 1, relaxed_atomic>>(rl::test_result_data_race);
  expect_failure<slot_increment<relaxed_atomic>>(rl::test_result_data_race);
}

TEST(slot_mutation, divided_signals_get_lost) {
  expect_failure<slot_excess<3, divided_atomic>>(rl::test_result_user_assert_failed);
  expect_failure<slot_flood<2, 3, 2, divided_atomic>>(rl::test_result_user_assert_failed);
  expect_failure<slot_closing<2, divided_atomic>>(rl::test_result_user_assert_failed);
}

}  // namespace
}  // namespace strata::model
