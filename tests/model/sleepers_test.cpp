// SPDX-License-Identifier: Apache-2.0
// No message is slept over by a receiver and its stand-in.
#include "sleepers_model.hpp"

namespace strata::model {
namespace {

TEST(sleepers, one_of_two_looks_for_each_message) {
  expect_correct_at_random<sleepers_and_senders<1>>(100);
  expect_correct_at_random<sleepers_and_senders<2>>(100);
  expect_correct_always<sleepers_and_senders<1>>(2);
}

TEST(sleepers, a_sender_that_dies_before_it_wakes_whom_it_has_called_leaves_nobody_asleep) {
  using dying = sleepers_and_senders<1, fenced_futex_atomic, leaving::after_it_has_looked,
                                     sender::dies_first>;
  expect_correct_at_random<dying>(100);
}

TEST(sleepers_mutation, a_dead_sender_of_which_nobody_reminds_leaves_somebody_asleep) {
  expect_failure<sleepers_and_senders<1, fenced_futex_atomic, leaving::after_it_has_looked,
                                      sender::dies_first_and_nobody_reminds>>(
      rl::test_result_deadlock);
}

TEST(sleepers_mutation, a_stand_in_that_leaves_without_looking_loses_a_message) {
  expect_failure<sleepers_and_senders<2, fenced_futex_atomic, leaving::before_it_looks_again>>(
      rl::test_result_deadlock);
  expect_failure<sleepers_and_senders<1, fenced_futex_atomic, leaving::never_looks>>(
      rl::test_result_deadlock);
}

TEST(sleepers_mutation, a_sender_that_does_not_fence_loses_a_message) {
  expect_failure<sleepers_and_senders<1, fenced_futex_atomic, leaving::after_it_has_looked,
                                      sender::does_not_fence>>(rl::test_result_deadlock);
}

TEST(sleepers_mutation, acquire_and_release_alone_lose_a_message) {
  expect_failure<sleepers_and_senders<1, acquire_release_futex_atomic>>(rl::test_result_deadlock);
}

}  // namespace
}  // namespace strata::model
