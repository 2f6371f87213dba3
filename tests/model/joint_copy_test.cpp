// SPDX-License-Identifier: Apache-2.0
// A block that two copy together is copied once, and left by both.
#include "joint_copy_model.hpp"

namespace strata::model {
namespace {

TEST(joint_copy, each_piece_is_copied_once_and_seen_by_its_owner) {
  expect_correct_at_random<copied_together<model_atomic, 3>>(20);
  expect_correct_always<copied_together<model_atomic, 2>>(2);
}

TEST(joint_copy, what_a_helper_could_not_copy_is_left_to_its_owner) {
  expect_correct_at_random<copied_together<model_atomic, 3, mishap::helper_fails>>(20);
  expect_correct_always<copied_together<model_atomic, 2, mishap::helper_fails>>(2);
}

TEST(joint_copy, nobody_comes_to_a_block_that_its_owner_has_left) {
  expect_correct_at_random<copied_together<model_atomic, 2, mishap::owner_gives_up>>(20);
  expect_correct_always<copied_together<model_atomic, 2, mishap::owner_gives_up>>(2);
}

TEST(joint_copy_mutation, pieces_that_nobody_claims_let_them_in) {
  expect_failure<copied_together<model_atomic, 2, mishap::owner_gives_up_at_once>>(
      rl::test_result_data_race);
}

TEST(joint_copy_mutation, relaxed_orders_show_pieces_that_are_not_there_yet) {
  expect_failure<copied_together<relaxed_atomic, 3>>(rl::test_result_data_race);
}

TEST(joint_copy_mutation, a_claim_in_two_steps_is_made_twice) {
  expect_failure<copied_together<divided_atomic, 3>>(rl::test_result_data_race);
}

}  // namespace
}  // namespace strata::model
