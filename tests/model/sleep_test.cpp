// SPDX-License-Identifier: Apache-2.0
// Nobody sleeps while there is work that nobody else will do.
#include "sleep_model.hpp"

namespace strata::model {
namespace {

using enum task_length;
using enum beginning;

TEST(sleep, everything_is_found) {
  expect_correct_at_random<sleeping_workers<1, brief>>(100);
  expect_correct_at_random<sleeping_workers<2, brief>>(100);
  expect_correct_always<sleeping_workers<1, brief>>(2);
}

TEST(sleep, everything_is_found_without_membarrier) {
  expect_correct_at_random<sleeping_workers<1, brief, unavailable_fences>>(100);
  expect_correct_at_random<sleeping_workers<2, brief, unavailable_fences>>(100);
}

// With three workers this also keeps a request that was dropped when a thief had just forced out
// what the owner was about to share.
TEST(sleep, every_task_finds_a_worker) {
  expect_correct_at_random<sleeping_workers<2, endless>>(100);
  expect_correct_at_random<sleeping_workers<3, endless>>(100);
  expect_correct_at_random<sleeping_workers<2, endless, unavailable_fences>>(100);
}

TEST(sleep, every_task_finds_a_worker_while_others_bring_something_too) {
  expect_correct_at_random<sleeping_workers<2, endless, model_fences, omitted::nothing, delivery>>(
      100);
  expect_correct_at_random<sleeping_workers<3, endless, model_fences, omitted::nothing, delivery>>(
      100);
}

// The fence at every push is the kernel's part when one falls asleep. When one is woken and takes
// something nobody asks the kernel, and nothing may depend on it.
TEST(sleep, every_task_finds_a_worker_while_pushes_are_on_their_way) {
  expect_correct_at_random<
      sleeping_workers<2, endless, one_sided_fences, omitted::nothing, all_asleep>>(100);
}

TEST(sleep_mutation, one_sided_fences_lose_a_wake_up) {
  expect_failure<sleeping_workers<1, brief, one_sided_fences>>(rl::test_result_deadlock);
}

TEST(sleep_mutation, keeping_the_find_to_oneself_leaves_others_asleep) {
  expect_failure<sleeping_workers<2, endless, model_fences, omitted::succession>>(
      rl::test_result_deadlock);
}

// A thief's request may arrive too late for a push that the thief does not see yet either.
TEST(sleep_mutation, relying_on_the_thief_to_ask_leaves_others_asleep) {
  expect_failure<sleeping_workers<2, endless, one_sided_fences, omitted::reminder, all_asleep>>(
      rl::test_result_deadlock);
}

TEST(sleep_mutation, looking_for_a_last_time_too_early_leaves_others_asleep) {
  expect_failure<sleeping_workers<2, endless, model_fences, omitted::fence_of_succession>>(
      rl::test_result_deadlock);
}

TEST(sleep_mutation, going_to_sleep_without_asking_leaves_others_asleep) {
  expect_failure<sleeping_workers<2, endless, model_fences, omitted::request_before_sleep>>(
      rl::test_result_deadlock);
}

TEST(sleep_mutation, being_woken_and_doing_something_else_leaves_others_asleep) {
  expect_failure<
      sleeping_workers<2, endless, model_fences, omitted::succession_of_the_busy, delivery>>(
      rl::test_result_deadlock);
}

}  // namespace
}  // namespace strata::model
