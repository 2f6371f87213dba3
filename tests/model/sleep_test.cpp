// SPDX-License-Identifier: Apache-2.0
// Nobody sleeps while there is work that nobody else will do.
#include "sleep_model.hpp"

namespace strata::model {
namespace {

using enum succession;
using enum task_length;

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
  expect_correct_at_random<sleeping_workers<2, endless, model_fences, until_surely_none_is_left>>(
      100);
  expect_correct_at_random<sleeping_workers<3, endless, model_fences, until_surely_none_is_left>>(
      100);
  expect_correct_at_random<
      sleeping_workers<2, endless, unavailable_fences, until_surely_none_is_left>>(100);
}

// A known gap. The scheduler saves the fence when nothing is to be seen: a worker that leaves the
// search just when an owner pushes its last task, before that store arrives, wakes nobody. So does
// one whose own request, made with what it took, has not arrived at the owner by then. The task
// then waits until anybody searches or pushes; it is late, not lost.
TEST(sleep_gap, a_push_on_its_way_may_find_no_second_worker) {
  expect_failure<sleeping_workers<2, endless, model_fences, while_work_is_visible>>(
      rl::test_result_deadlock);
}

TEST(sleep_mutation, one_sided_fences_lose_a_wake_up) {
  expect_failure<sleeping_workers<1, brief, one_sided_fences>>(rl::test_result_deadlock);
}

TEST(sleep_mutation, keeping_the_find_to_oneself_leaves_others_asleep) {
  expect_failure<sleeping_workers<2, endless, model_fences, never>>(rl::test_result_deadlock);
}

TEST(sleep_mutation, going_to_sleep_without_asking_leaves_others_asleep) {
  expect_failure<
      sleeping_workers<2, endless, model_fences, until_surely_none_is_left, request::none>>(
      rl::test_result_deadlock);
}

}  // namespace
}  // namespace strata::model
