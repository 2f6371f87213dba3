// SPDX-License-Identifier: Apache-2.0
// No wake-up is lost, and a place has one user at a time.
#include "idle_model.hpp"

namespace strata::model {
namespace {

using enum before_sleep;
using enum parting;

TEST(idle, work_wakes_a_sleeper) {
  expect_correct_at_random<idle_producers<1, 1>>(100);
  expect_correct_at_random<idle_producers<2, 1>>(100);
  expect_correct_at_random<idle_producers<2, 2>>(100);
  expect_correct_always<idle_producers<1, 1>>(5);
  expect_correct_always<idle_producers<2, 1>>(2);
}

TEST(idle, the_woken_sees_what_its_waker_wrote) {
  expect_correct_at_random<idle_visibility<>>(100);
  expect_correct_always<idle_visibility<>>(4);
}

TEST(idle, a_place_is_lent_and_given_back) {
  expect_correct_at_random<idle_lease<hand_back>>(100);
  expect_correct_at_random<idle_lease<give_back>>(100);
}

TEST(idle, something_is_taken_out_of_a_sleepers_place) {
  expect_correct_at_random<idle_taken_from<taking::before_it_goes_on>>(100);
}

TEST(idle, a_guest_sleeps_in_its_place) { expect_correct_at_random<idle_guest<>>(100); }

// Who wakes it has not looked before whether it sleeps.
TEST(idle, a_guest_is_woken_by_who_does_not_look) {
  expect_correct_at_random<idle_guest<loading_futex_atomic, newest_futex>>(100);
}

TEST(idle, what_is_left_for_a_place_is_neither_forgotten_nor_overlooked) {
  expect_correct_at_random<idle_left<departure::looks, end_check::counts_departures>>(200);
}

TEST(idle, one_tells_that_nothing_moves) {
  expect_correct_at_random<idle_tellers<teller::who_is_first>>(100);
  expect_correct_always<idle_tellers<teller::who_is_first>>(4);
}

TEST(idle_mutation, who_has_seen_that_nothing_moves_tells_when_something_does) {
  expect_failure<idle_tellers<teller::who_has_seen_it>>(rl::test_result_user_assert_failed);
}

TEST(idle_mutation, a_guest_that_does_not_look_forgets_what_is_left) {
  expect_failure<idle_left<departure::looks_no_more, end_check::counts_departures>>(
      rl::test_result_deadlock);
}

TEST(idle_mutation, sleepers_alone_are_not_the_end) {
  expect_failure<idle_left<departure::looks, end_check::counts_sleepers>>(
      rl::test_result_user_assert_failed);
  expect_failure<idle_left<departure::looks, end_check::looks_once>>(
      rl::test_result_user_assert_failed);
}

TEST(idle_mutation, looking_before_announcing_loses_a_wake_up) {
  expect_failure<idle_producers<1, 1, futex_atomic, model_futex, look_then_announce>>(
      rl::test_result_deadlock);
  expect_failure<idle_producers<1, 1, futex_atomic, model_futex, announce_only>>(
      rl::test_result_deadlock);
}

TEST(idle_mutation, forgetting_to_look_after_a_visit_loses_a_wake_up) {
  expect_failure<idle_lease<give_back_and_forget>>(rl::test_result_deadlock);
}

TEST(idle_mutation, taking_out_of_the_place_of_one_that_is_awake) {
  expect_failure<idle_taken_from<taking::when_it_is_awake>>(rl::test_result_data_race);
}

TEST(idle_mutation, acquire_and_release_alone_lose_a_wake_up) {
  expect_failure<idle_producers<1, 1, acquire_release_futex_atomic>>(rl::test_result_deadlock);
  expect_failure<idle_guest<acquire_release_futex_atomic>>(rl::test_result_deadlock);
}

TEST(idle_mutation, a_wake_up_that_fails_without_order_is_lost) {
  expect_failure<idle_guest<stale_futex_atomic, newest_futex>>(rl::test_result_deadlock);
}

TEST(idle_mutation, relaxed_waking_hides_data) {
  expect_failure<idle_visibility<relaxed_futex_atomic>>(rl::test_result_data_race);
}

TEST(idle_mutation, a_futex_that_does_not_compare_loses_a_wake_up) {
  expect_failure<idle_producers<1, 1, futex_atomic, blind_futex>>(rl::test_result_deadlock);
}

TEST(idle_mutation, waking_the_host_for_the_guest_wakes_the_wrong_one) {
  expect_failure<idle_guest<futex_atomic, own_threads_futex>>(rl::test_result_deadlock);
}

}  // namespace
}  // namespace strata::model
