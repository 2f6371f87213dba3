// SPDX-License-Identifier: Apache-2.0
// Who waits until the taker of signals has passed on what he left goes on when that has been
// handled, and sees it; and is woken.
#include "explore.hpp"
#include "model_futex.hpp"
#include "mutations.hpp"
//
#include <atomic>
#include <cstdint>

#include "pthread/left_rounds.hpp"

namespace strata::model {
namespace {

// Without a limit of time: who is not woken is found.
struct rounds_futex : model_futex {
  template <class Word>
  static void wait(Word& word, std::uint32_t seen, const code_place& at = {}) {
    model_futex::wait(word, seen, at);
  }
};

// Mutation: sleeps whatever has happened since it looked.
struct late_futex : rounds_futex {
  template <class Word>
  static void wait(Word& word, std::uint32_t, const code_place& at = {}) {
    rl::ctx().sched();
    sleep(word, at);
  }
};

// Mutation: who adds nothing only looks.
template <class T>
class looking_atomic : public futex_atomic<T> {
 public:
  using futex_atomic<T>::futex_atomic;

  T fetch_add(T more, std::memory_order o, const code_place& at = {}) {
    return more == 0 ? this->load(std::memory_order_acquire, at)
                     : futex_atomic<T>::fetch_add(more, o, at);
  }
};

// Threads 1 and 2 leave something and wait; thread 0 is the taker, whom they ring for.
template <template <class> class Atomic = futex_atomic, class Futex = rounds_futex>
struct left_awaited : rl::test_suite<left_awaited<Atomic, Futex>, 3> {
  static constexpr unsigned leavers = 2;
  inline static struct { unsigned by_round = 0, slept = 0; } reached;

  detail::posix::left_rounds<Atomic, Futex> rounds;
  // Not weakened. What is left, and what its handler did: relaxed, the rounds order it.
  model_atomic<int> put[leavers];
  model_atomic<int> handled[leavers];
  futex_atomic<std::uint32_t> rung{0};

  void taker() {
    bool done[leavers] = {};
    for (unsigned n = 0; n < leavers;) {
      const std::uint32_t seen = rung.load(std::memory_order_acquire);
      const std::uint32_t round = rounds.begin();
      for (unsigned i = 0; i < leavers; ++i) {
        if (done[i] || put[i].load(std::memory_order_relaxed) == 0) continue;
        handled[i].store(1, std::memory_order_relaxed);
        done[i] = true;
        ++n;
        rounds.one_is_passed_on();
      }
      rounds.end(round);
      if (n < leavers) model_futex::wait(rung, seen);
    }
  }

  void thread(unsigned self) {
    if (self == 0) return taker();
    const unsigned me = self - 1;
    rounds.one_is_left();
    put[me].store(1, std::memory_order_relaxed);
    rung.fetch_add(1, std::memory_order_release);
    model_futex::wake_all(rung);
    const std::uint32_t mine = rounds.by_now();
    while (rounds.await(mine)) ++reached.slept;
    reached.by_round += handled[1 - me].load(std::memory_order_relaxed) == 0;
    RL_ASSERT(handled[me].load(std::memory_order_relaxed) == 1);
  }
};

TEST(left_rounds, who_waits_goes_on_when_what_he_left_has_been_handled) {
  using model = left_awaited<>;
  model::reached = {};
  expect_correct_at_random<model>(50);
  EXPECT_GT(model::reached.by_round, 0U);  // though the other's had not been
  EXPECT_GT(model::reached.slept, 0U);
  expect_correct_always<model>(1);
}

TEST(left_rounds_mutation, relaxed_orders_hide_what_was_left_or_done) {
  expect_failure<left_awaited<relaxed_futex_atomic>>(rl::test_result_user_assert_failed);
}

TEST(left_rounds_mutation, who_only_looks_at_the_round_is_left_out_of_it) {
  expect_failure<left_awaited<looking_atomic>>(rl::test_result_user_assert_failed);
}

TEST(left_rounds_mutation, who_sleeps_without_another_look_is_not_woken) {
  expect_failure<left_awaited<futex_atomic, late_futex>>(rl::test_result_deadlock);
}

}  // namespace
}  // namespace strata::model
