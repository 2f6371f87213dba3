// SPDX-License-Identifier: Apache-2.0
// Nobody makes stacks ready of a runtime that has ended.
#include "explore.hpp"
#include "mutations.hpp"
//
#include <atomic>

#include "sched/home_gate.hpp"

namespace strata::model {
namespace {

// How a runtime ends, and a mutation. The steps are those of scheduler::give_up_waiters().
enum class ending { at_once, at_the_second_try, without_waiting };

template <ending Ending, template <class> class Atomic = model_atomic>
struct gate_of_one_that_ends : rl::test_suite<gate_of_one_that_ends<Ending, Atomic>, 3> {
  detail::home_gate<Atomic> gate;
  rl::var<int> home{1};
  rl::var<int> work[2];

  void close() {
    gate.close();
    if (Ending == ending::without_waiting) return;
    while (!gate.is_empty()) rl::yield(1, RL_INFO);
  }
  void end() {
    close();
    if (Ending == ending::at_the_second_try) {
      gate.open();
      close();
    }
    home(RL_INFO) = 0;
    // What they have left.
    for (auto& w : work) w(RL_INFO) = 0;
  }
  void thread(unsigned self) {
    if (self == 2) return end();
    for (int i = 0; i < 2; ++i) {
      if (!gate.try_enter()) continue;
      RL_ASSERT(home(RL_INFO) == 1);
      work[self](RL_INFO) = 1;
      gate.leave();
    }
  }
  void after() {
    RL_ASSERT(gate.is_empty());
    RL_ASSERT(gate.is_closed());
    RL_ASSERT(!gate.try_enter());
  }
};

TEST(home_gate, who_is_inside_is_awaited) {
  expect_correct_at_random<gate_of_one_that_ends<ending::at_once>>(100);
  expect_correct_at_random<gate_of_one_that_ends<ending::at_the_second_try>>(100);
  expect_correct_always<gate_of_one_that_ends<ending::at_once>>(2);
}

TEST(home_gate_mutation, ending_without_waiting_is_seen_inside) {
  expect_failure<gate_of_one_that_ends<ending::without_waiting>>(rl::test_result_data_race);
}

TEST(home_gate_mutation, relaxed_leaving_hides_what_was_done_inside) {
  expect_failure<gate_of_one_that_ends<ending::at_once, relaxed_atomic>>(rl::test_result_data_race);
}

}  // namespace
}  // namespace strata::model
