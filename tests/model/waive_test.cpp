// SPDX-License-Identifier: Apache-2.0
// Nobody sleeps over what was waived to it.
#include "waive_model.hpp"

namespace strata::model {
namespace {

TEST(waive, the_successor_is_awake_or_woken) {
  expect_correct_at_random<waived_while_asleep<model_fences>>(100);
  expect_correct_always<waived_while_asleep<model_fences>>(2);
}

TEST(waive, the_successor_is_awake_or_woken_without_membarrier) {
  expect_correct_at_random<waived_while_asleep<unavailable_fences>>(100);
  expect_correct_always<waived_while_asleep<unavailable_fences>>(2);
}

TEST(waive, somebody_sees_to_what_waits_at_a_lent_place) {
  expect_correct_at_random<waived_to_a_lent_place<unwoken::has_it_seen_to>>(100);
  expect_correct_always<waived_to_a_lent_place<unwoken::has_it_seen_to>>(2);
}

TEST(waive_mutation, who_cannot_be_woken_is_not_awake) {
  expect_failure<waived_to_a_lent_place<unwoken::believes_it_awake>>(rl::test_result_livelock);
}

TEST(waive_mutation, one_sided_fences_lose_a_wake_up) {
  expect_failure<waived_while_asleep<one_sided_fences>>(rl::test_result_deadlock);
}

}  // namespace
}  // namespace strata::model
