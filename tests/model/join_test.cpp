// SPDX-License-Identifier: Apache-2.0
// Waiter and completer meet: the waiter is continued exactly once, sees the results, and may then
// destroy the word. A suspended waiter is continued by the completer's thread, as resume() does.
#include "explore.hpp"
#include "mutations.hpp"
#include "relacy_atomic.hpp"
//
#include "strata/detail/join_word.hpp"

namespace strata::model {
namespace {

template <template <class> class Atomic = model_atomic>
struct meeting : rl::test_suite<meeting<Atomic>, 2> {
  struct waiter {
    rl::var<int> saved{0};
  };
  using word = detail::join_word<waiter, Atomic>;

  word* join = nullptr;
  waiter suspended;
  rl::var<int> result{0};
  rl::var<int> continued{0};

  void before() { join = ::new (RL_INFO) word; }

  void go_on(bool after_suspension) {
    if (after_suspension) RL_ASSERT(suspended.saved(RL_INFO) == 1);
    RL_ASSERT(join->done());
    RL_ASSERT(result(RL_INFO) == 1);
    RL_ASSERT(continued(RL_INFO) == 0);
    continued(RL_INFO) = 1;
    rl::delete_impl(join, RL_INFO);
  }

  void thread(unsigned self) {
    if (self == 0) {
      if (!join->done()) {
        suspended.saved(RL_INFO) = 1;
        if (join->commit(suspended)) return;
      }
      go_on(false);
    } else {
      result(RL_INFO) = 1;
      if (waiter* w = join->complete()) {
        RL_ASSERT(w == &suspended);
        go_on(true);
      }
    }
  }
  void after() { RL_ASSERT(continued(RL_INFO) == 1); }
};

TEST(join, waiter_goes_on_once_and_sees_the_results) {
  expect_correct_at_random<meeting<>>(100);
  expect_correct_always<meeting<>>(10);
}

TEST(join_mutation, relaxed_orders_hide_results) {
  expect_failure<meeting<relaxed_atomic>>(rl::test_result_data_race);
}

}  // namespace
}  // namespace strata::model
