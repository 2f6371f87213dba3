// SPDX-License-Identifier: Apache-2.0
// Signals that handlers leave to another thread reach it whole, once, and none is forgotten.
#include "left_signals_model.hpp"

namespace strata::model {
namespace {

TEST(queued_signals, each_that_was_put_is_taken_once_and_in_order) {
  expect_correct_at_random<left_in_order<3>>(50);
  expect_correct_always<left_in_order<2>>(2);
}

TEST(queued_signals, ring_is_full_and_goes_round) {
  using model = left_in_order<3>;
  model::reached = {};
  expect_correct_at_random<model>(20);
  EXPECT_GT(model::reached.refused, 0U);
  EXPECT_GT(model::reached.gone_round, 0U);
}

TEST(merged_signals, one_is_taken_after_each_also_after_those_that_are_refused) {
  using model = left_merged<3>;
  model::reached = {};
  expect_correct_at_random<model>(50);
  EXPECT_GT(model::reached.refused, 0U);
  EXPECT_GT(model::reached.again, 0U);
  expect_correct_always<left_merged<2>>(2);
}

TEST(queued_signals_mutation, relaxed_orders_show_signals_that_are_not_there_yet) {
  expect_failure<left_in_order<3, relaxed_atomic>>(rl::test_result_data_race);
}

TEST(queued_signals_mutation, a_slot_shared_out_in_two_steps_has_two_owners) {
  expect_failure<left_in_order<3, divided_atomic>>(rl::test_result_data_race);
}

TEST(merged_signals_mutation, relaxed_orders_show_signals_that_are_not_there_yet) {
  expect_failure<left_merged<3, relaxed_atomic>>(rl::test_result_data_race);
}

TEST(merged_signals_mutation, who_only_stores_does_not_see_who_was_refused) {
  expect_failure<left_merged<3, storing_atomic>>(rl::test_result_user_assert_failed);
}

TEST(merged_signals_mutation, who_is_refused_and_writes_nothing_is_not_seen) {
  expect_failure<left_merged<3, changing_atomic>>(rl::test_result_user_assert_failed);
}

}  // namespace
}  // namespace strata::model
