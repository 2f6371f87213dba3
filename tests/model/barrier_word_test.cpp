// SPDX-License-Identifier: Apache-2.0
// Arrivals at a barrier count in the phase that they are told, each phase as many as it expects,
// also where more come; and one thread after the other ends a phase.
#include "explore.hpp"
#include "mutations.hpp"
//
#include "strata/detail/barrier_word.hpp"

namespace strata::model {
namespace {

// Two threads arrive, each twice, and a third arrives or drops out, at a barrier for two that none
// of them waits at: of three that come at once one is too many.
template <bool Drops, template <class> class Atomic = model_atomic>
struct crowded_barrier : rl::test_suite<crowded_barrier<Drops, Atomic>, 3> {
  using word = detail::barrier_word<Atomic>;
  static constexpr unsigned threads = 3, tries = 2, phases_max = 4;

  word who_is_missing{2};
  unsigned arrived[threads][phases_max] = {};  // by each thread
  unsigned dropped_in = phases_max;
  rl::var<unsigned> ended{0};

  void end_phase(const typename word::arrival& a) {
    RL_ASSERT(ended(RL_INFO) == a.phase);
    ended(RL_INFO) = a.phase + 1;
    who_is_missing.begin_next();
  }
  void thread(unsigned self) {
    const bool drops = Drops && self == 2;
    for (unsigned i = 0; i < (self == 2 ? 1 : tries); ++i) {
      typename word::arrival a{};
      for (;;) {
        const bool has_come = drops ? who_is_missing.try_drop(a, [] { rl::yield(1, RL_INFO); })
                                    : who_is_missing.try_arrive(1, a);
        if (has_come) break;
        RL_ASSERT(a.missing == 0);
        rl::yield(1, RL_INFO);  // the phase is just ending
      }
      RL_ASSERT(a.phase < phases_max);
      ++arrived[self][a.phase];
      if (drops) dropped_in = a.phase;
      if (a.is_last) end_phase(a);
    }
  }
  void after() {
    // Who drops out is expected in the phase in which it has come, and in none after it.
    unsigned left = 2 * tries + 1;
    for (unsigned phase = 0; phase < phases_max; ++phase) {
      const unsigned expected = std::min(left, phase > dropped_in ? 1U : 2U);
      unsigned came = 0;
      for (const auto& of_one : arrived) came += of_one[phase];
      RL_ASSERT(came == expected);
      left -= expected;
    }
    RL_ASSERT(left == 0);
    RL_ASSERT(who_is_missing.phase() == ended(RL_INFO));
  }
};

// What each did before it arrived the last one sees, and what that did who goes on.
template <template <class> class Atomic = model_atomic>
struct meeting_at_a_barrier : rl::test_suite<meeting_at_a_barrier<Atomic>, 2> {
  detail::barrier_word<Atomic> who_is_missing{2};
  rl::var<int> mine[2], sum{0};

  void thread(unsigned self) {
    for (int phase = 1; phase <= 2; ++phase) {
      mine[self](RL_INFO) = phase;
      const auto a = who_is_missing.arrive(1);
      RL_ASSERT(a.phase + 1 == static_cast<unsigned>(phase));
      if (a.is_last) {
        sum(RL_INFO) = mine[0](RL_INFO) + mine[1](RL_INFO);
        who_is_missing.begin_next();
      }
      while (who_is_missing.phase() == a.phase) rl::yield(1, RL_INFO);
      RL_ASSERT(sum(RL_INFO) == 2 * phase);
    }
  }
};

TEST(barrier_word, arrivals_count_in_the_phase_that_they_are_told) {
  expect_correct_at_random<crowded_barrier<false>>(100);
  expect_correct_always<crowded_barrier<false>>(3);
}
TEST(barrier_word, who_drops_out_is_expected_in_one_phase_and_in_no_later_one) {
  expect_correct_at_random<crowded_barrier<true>>(100);
  expect_correct_always<crowded_barrier<true>>(3);
}
TEST(barrier_word, shows_what_was_done_before) {
  expect_correct_at_random<meeting_at_a_barrier<>>(100);
  expect_correct_always<meeting_at_a_barrier<>>(5);
}

TEST(barrier_word_mutation, relaxed_orders_hide_what_was_done) {
  expect_failure<meeting_at_a_barrier<relaxed_atomic>>(rl::test_result_data_race);
}
TEST(barrier_word_mutation, an_arrival_in_two_steps_is_lost) {
  expect_failure<crowded_barrier<false, divided_atomic>>(rl::test_result_user_assert_failed);
}

}  // namespace
}  // namespace strata::model
