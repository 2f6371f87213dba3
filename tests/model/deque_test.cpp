// SPDX-License-Identifier: Apache-2.0
// Every item is taken exactly once, by somebody who sees what the owner put in it.
#include "deque_model.hpp"
#include "mutations.hpp"

namespace strata::model {
namespace {

TEST(deque, one_thief) {
  expect_correct_at_random<deque_model<"********", "******">>(200);
  expect_correct_at_random<deque_model<"****", "lll">>(100);
}

TEST(deque, two_thieves) {
  expect_correct_at_random<deque_model<"********", "****", 2>>(200);
  expect_correct_at_random<deque_model<"ppp****", "lll", 2>>(100);
}

TEST(deque, owner_that_is_deep_in_something_long) {
  expect_correct_at_random<
      deque_model<"pppp", "lll", 2, model_fences, model_atomic, at_the_end::abandon>>(100);
}

TEST(deque, without_membarrier) {
  expect_correct_at_random<deque_model<"********", "******", 1, unavailable_fences>>(100);
  expect_correct_at_random<deque_model<"********", "****", 2, unavailable_fences>>(100);
}

TEST(deque, owner_that_asks_itself_later) {
  expect_correct_at_random<deque_model<"pw******", "******">>(100);
  expect_correct_at_random<deque_model<"pw****w**", "****", 2>>(100);
  expect_correct_always<deque_model<"pwppoo", "asf">>(2);
}

// An owner that pushes no more answers between two pops.
TEST(deque, owner_that_shares_as_it_pops) {
  using model = deque_model<"pppohohoh", "asls">;
  expect_correct_at_random<model>(100);
  EXPECT_GT(model::reached.shared, 0U);
  expect_correct_at_random<deque_model<"ppphohph", "lafs", 2>>(100);
  expect_correct_at_random<deque_model<"pphohpoh", "asls", 2, unavailable_fences>>(100);
  expect_correct_always<deque_model<"ppohoh", "asf">>(2);
}

// Half of what is private: two of three, of which the owner takes some back meanwhile.
TEST(deque, forcing_more_than_one) {
  expect_correct_at_random<deque_model<"pppooo", "fss", 2>>(100);
  expect_correct_always<deque_model<"pppoopo", "fss">>(2);
}

// More pushes than there are slots: the deque fills up, and the ring goes round.
TEST(deque, full) {
  using one = deque_model<"ppppppppp", "sals">;
  expect_correct_at_random<one>(100);
  EXPECT_GT(one::reached.taken_back, 0U);
  using two = deque_model<"pppppppp", "asls", 2>;
  expect_correct_at_random<two>(100);
  EXPECT_GT(two::reached.taken_back, 0U);
}

// The models get to the rare places.
TEST(deque, every_outcome_is_reached) {
  using model = deque_model<"********", "****", 2>;
  expect_correct_at_random<model>(20);
  EXPECT_GT(model::reached.shared, 0U);
  EXPECT_GT(model::reached.forced, 0U);
  EXPECT_GT(model::reached.stolen, 0U);
  EXPECT_GT(model::reached.lost_by_thief, 0U);
  EXPECT_GT(model::reached.lost_by_owner, 0U);
}

TEST(deque, all_schedules_with_few_interruptions) {
  expect_correct_always<deque_model<"ppoo", "asf">>(3);
  expect_correct_always<deque_model<"pponpo", "asfs">>(2);
  expect_correct_always<deque_model<"ppo", "sf", 2>>(2);
  expect_correct_always<deque_model<"ppto", "asl", 1, unavailable_fences>>(3);
}

// The owner of an empty deque that was never stolen from tries to take the item before the first,
// because a provisional split makes the deque look as if it held something.
TEST(deque, forcing_an_empty_deque) { expect_correct_always<deque_model<"pnop", "fs">>(3); }

// The owner lowered the split below the tail, and a thief that forces changes it before the owner
// has raised it again: what the split says then is no proof that the item is private.
TEST(deque, forcing_while_the_owner_takes_back_the_last_item) {
  expect_correct_at_random<deque_model<"opo", "assf">>(100);
  expect_correct_at_random<deque_model<"po", "asf", 2>>(100);
}

TEST(deque_mutation, one_sided_fences_double_an_item) {
  expect_failure<deque_model<"****", "****", 1, one_sided_fences>>(rl::test_result_data_race);
}

TEST(deque_mutation, an_owner_blind_to_provisional_splits_doubles_an_item) {
  expect_failure<deque_model<"****", "****", 1, model_fences, unsuspecting_atomic>>(
      rl::test_result_data_race);
}

TEST(deque_mutation, acquire_and_release_alone_double_an_item) {
  expect_failure<deque_model<"****", "****", 1, model_fences, acquire_release_atomic>>(
      rl::test_result_data_race);
}

TEST(deque_mutation, relaxed_orders_hide_contents) {
  expect_failure<deque_model<"****", "****", 1, model_fences, relaxed_atomic>>(
      rl::test_result_data_race);
}

}  // namespace
}  // namespace strata::model
