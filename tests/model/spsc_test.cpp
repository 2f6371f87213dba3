// SPDX-License-Identifier: Apache-2.0
// The Waiver Queue loses nothing, and shows nothing before it is there.
#include "spsc_model.hpp"

namespace strata::model {
namespace {

TEST(spsc_queue, gives_each_item_once_in_order_with_what_it_holds) {
  expect_correct_at_random<pushed_and_popped<>>(20);
  expect_correct_always<pushed_and_popped<>>(1);
}

TEST(spsc_queue_mutation, relaxed_orders_show_items_that_are_not_there_yet) {
  expect_failure<pushed_and_popped<relaxed_atomic>>(rl::test_result_data_race);
}

}  // namespace
}  // namespace strata::model
