// SPDX-License-Identifier: Apache-2.0
// What is handed over has one taker, who sees what was written before; who closes the place knows
// that nothing is in it until it is open again.
#include "explore.hpp"
#include "mutations.hpp"
#include "relacy_atomic.hpp"
//
#include "sched/handover.hpp"

namespace strata::model {
namespace {

// Threads 0 and 1 put two things each, again and again until they are in; the others take.
template <unsigned Takers, template <class> class Atomic = model_atomic>
struct handing_over : rl::test_suite<handing_over<Takers, Atomic>, 2 + Takers> {
  struct thing {
    rl::var<int> written{0};
    rl::var<int> taken{0};
  };
  static constexpr int things = 2;

  detail::handover<thing, Atomic> place;
  thing of[2][things];
  Atomic<int> left{2 * things};

  void thread(unsigned self) {
    if (self < 2) {
      for (thing& t : of[self]) {
        t.written(RL_INFO) = 1;
        while (!place.put(&t)) rl::yield(1, RL_INFO);
      }
      return;
    }
    while (left.load(std::memory_order_relaxed) > 0) {
      thing* const t = place.take();
      if (t == nullptr) {
        rl::yield(1, RL_INFO);
        continue;
      }
      RL_ASSERT(t->written(RL_INFO) == 1);
      RL_ASSERT(t->taken(RL_INFO) == 0);
      t->taken(RL_INFO) = 1;
      left.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  void after() { RL_ASSERT(!place.holds_something()); }
};

// What got in before the place was closed is out again by then; what gets in later sees that it has
// been opened.
template <template <class> class Atomic = model_atomic>
struct closing : rl::test_suite<closing<Atomic>, 2> {
  detail::handover<int, Atomic> place;
  int thing = 0;
  Atomic<int> shut{0};
  rl::var<int> awake{0};

  void thread(unsigned self) {
    if (self == 0) {
      while (!place.put(&thing)) rl::yield(1, RL_INFO);
      RL_ASSERT(shut.load(std::memory_order_relaxed) % 2 == 0);
      awake(RL_INFO) = 1;
      RL_ASSERT(place.take() == &thing);
      shut.fetch_add(2, std::memory_order_relaxed);
      return;
    }
    if (!place.close()) return;
    // Even: nobody has put it yet, or it is out again and its taker's doings are visible.
    const int before = shut.fetch_add(1, std::memory_order_relaxed);
    if (before == 2) RL_ASSERT(awake(RL_INFO) == 1);
    RL_ASSERT(!place.holds_something());
    RL_ASSERT(place.take() == nullptr);
    shut.fetch_sub(1, std::memory_order_relaxed);
    place.open();
  }
  void after() { RL_ASSERT(!place.holds_something()); }
};

TEST(handover, each_thing_has_one_taker_who_sees_it) {
  expect_correct_at_random<handing_over<1>>(100);
  expect_correct_at_random<handing_over<2>>(100);
  expect_correct_always<handing_over<1>>(2);
}

TEST(handover, nothing_comes_in_while_it_is_closed) {
  expect_correct_at_random<closing<>>(100);
  expect_correct_always<closing<>>(4);
}

TEST(handover_mutation, relaxed_orders_hide_the_thing) {
  expect_failure<handing_over<1, relaxed_atomic>>(rl::test_result_data_race);
}

TEST(handover_mutation, relaxed_orders_let_somebody_in) {
  expect_failure<closing<relaxed_atomic>>(rl::test_result_user_assert_failed);
}

}  // namespace
}  // namespace strata::model
