// SPDX-License-Identifier: Apache-2.0
// What lies on a shelf is taken once, and read as it was written.
#include "shelf_model.hpp"

namespace strata::model {
namespace {

TEST(shelf, each_thing_has_one_taker_who_reads_what_was_written) {
  expect_correct_at_random<shelf_owner_and_takers<1>>(100);
  expect_correct_at_random<shelf_owner_and_takers<2>>(100);
  expect_correct_at_random<shelf_owner_and_takers<3>>(30);
  expect_correct_always<shelf_owner_and_takers<1>>(3);
  expect_correct_always<shelf_owner_and_takers<2>>(2);
}

TEST(shelf, a_wish_and_what_is_shelved_meanwhile_find_each_other) {
  expect_correct_at_random<shelf_and_wish<>>(100);
  expect_correct_always<shelf_and_wish<>>(5);
}

TEST(shelf, one_taker_tells_the_owner_that_there_is_room) {
  expect_correct_at_random<shelf_runs_low<>>(100);
  expect_correct_always<shelf_runs_low<>>(3);
}

TEST(shelf_mutation, relaxed_orders_mix_old_and_new) {
  expect_failure<shelf_owner_and_takers<1, relaxed_atomic>>(rl::test_result_user_assert_failed);
}

TEST(shelf_mutation, a_claim_in_two_steps_is_made_twice) {
  expect_failure<shelf_owner_and_takers<2, divided_atomic>>(rl::test_result_user_assert_failed);
}

TEST(shelf_mutation, acquire_and_release_alone_miss_each_other) {
  expect_failure<shelf_and_wish<acquire_release_atomic>>(rl::test_result_user_assert_failed);
}

TEST(shelf_mutation, looking_before_shelving_misses_the_wish) {
  expect_failure<shelf_and_wish<model_atomic, habit::looks_then_says>>(
      rl::test_result_user_assert_failed);
}

}  // namespace
}  // namespace strata::model
