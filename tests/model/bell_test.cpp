// SPDX-License-Identifier: Apache-2.0
// Who rings wakes the sleeper, and disturbs it nowhere else.
#include "bell_model.hpp"

namespace strata::model {
namespace {

TEST(bell, each_ring_is_heard_with_what_was_done_before) {
  using model = bell_heard<beside::signals>;
  model::reached = {};
  expect_correct_at_random<model>(100);
  EXPECT_GT(model::reached.asleep, 0U);
  EXPECT_GT(model::reached.expected, 0U);
  expect_correct_always<model>(2);
}

TEST(bell, rings_that_are_thrown_away_are_rung_again) {
  expect_correct_at_random<bell_heard<beside::throws_rings_away>>(100);
  expect_correct_always<bell_heard<beside::throws_rings_away>>(2);
}

TEST(bell, who_may_not_ring_keeps_nobody_from_ringing) {
  expect_correct_at_random<bell_heard<beside::may_not_ring>>(100);
  expect_correct_always<bell_heard<beside::may_not_ring>>(2);
}

TEST(bell, no_ring_comes_to_who_has_quietened_it) {
  bell_quiet<>::expected_a_ring = 0;
  expect_correct_at_random<bell_quiet<>>(100);
  EXPECT_GT(bell_quiet<>::expected_a_ring, 0U);
  expect_correct_always<bell_quiet<>>(2);
}

TEST(bell_mutation, relaxed_orders_hide_what_was_done_before) {
  expect_failure<bell_heard<beside::signals, relaxed_atomic>>(rl::test_result_deadlock);
}

TEST(bell_mutation, who_rings_by_a_store_hides_what_those_did_who_rang_before) {
  expect_failure<bell_heard<beside::signals, ringing_by_store_atomic>>(rl::test_result_deadlock);
}

TEST(bell_mutation, who_looks_before_it_is_seen_asleep_is_not_woken) {
  expect_failure<bell_heard<beside::signals, late_atomic>>(rl::test_result_deadlock);
}

TEST(bell_mutation, a_ring_that_is_thrown_away_and_not_rung_again_wakes_nobody) {
  expect_failure<bell_heard<beside::throws_rings_away_and_rings_once>>(rl::test_result_deadlock);
}

TEST(bell_mutation, who_calls_and_may_not_ring_keeps_others_from_ringing) {
  expect_failure<bell_heard<beside::may_not_ring, model_atomic, bell_kernel_that_is_not_asked>>(
      rl::test_result_deadlock);
}

TEST(bell_mutation, rings_without_a_mark_take_the_place_of_signals) {
  expect_failure<bell_heard<beside::signals, model_atomic, bell_kernel_without_mark>>(
      rl::test_result_deadlock);
}

TEST(bell_mutation, who_calls_a_sleeper_that_has_woken_meanwhile_disturbs_it) {
  expect_failure<bell_quiet<late_change_atomic>>(rl::test_result_user_assert_failed);
}

}  // namespace
}  // namespace strata::model
