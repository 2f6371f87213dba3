// SPDX-License-Identifier: Apache-2.0
// Owner and thieves are never in the ready queue together, and every task is taken once.
#include "mutations.hpp"
#include "ready_queue_model.hpp"

namespace strata::model {
namespace {

TEST(ready_queue, owner_and_thieves_exclude_each_other) {
  expect_correct_at_random<ready_owner_and_thieves<1>>(100);
  expect_correct_at_random<ready_owner_and_thieves<2>>(100);
  expect_correct_always<ready_owner_and_thieves<1>>(2);
}

TEST(ready_queue_mutation, one_sided_fences_let_both_in) {
  expect_failure<ready_owner_and_thieves<1, model_atomic, one_sided_fences>>(
      rl::test_result_user_assert_failed);
}

TEST(ready_queue_mutation, an_owner_that_does_not_look_meets_a_thief) {
  expect_failure<ready_owner_and_thieves<1, model_atomic, model_fences, manners::barges_in>>(
      rl::test_result_user_assert_failed);
}

TEST(ready_queue_mutation, a_stack_that_is_put_there_too_early_has_two_users) {
  expect_failure<ready_owner_and_thieves<1, model_atomic, model_fences, manners::leaves_early>>(
      rl::test_result_data_race);
}

TEST(ready_queue_mutation, relaxed_orders_hide_what_the_other_did) {
  expect_failure<ready_owner_and_thieves<1, relaxed_atomic>>(rl::test_result_data_race);
}

}  // namespace
}  // namespace strata::model
