// SPDX-License-Identifier: Apache-2.0
// The mutex in one word: it excludes, and whoever waits is woken. The steps are those of
// detail::word_lock in strata/mutex.hpp and have to follow them; parking is the model's futex, of
// which each unlock wakes one.
#include "explore.hpp"
#include "model_futex.hpp"
#include "mutations.hpp"

namespace strata::model {
namespace {

struct wakes_one : model_futex {
  template <class Word>
  static void wake(Word& word, const code_place& at = {}) {
    rl::ctx().sched();
    word.waiting.unpark_one(rl::ctx(), at.info);
  }
};

// What a thread that was woken leaves in the word. Mutation: it forgets that others may wait.
enum class woken { says_contended, says_held };

template <int Threads, template <class> class Atomic = futex_atomic,
          woken Habit = woken::says_contended>
struct word_lock_users : rl::test_suite<word_lock_users<Threads, Atomic, Habit>, Threads> {
  static constexpr std::uint32_t free = 0, held = 1, contended = 2;

  Atomic<std::uint32_t> state{free};
  rl::var<int> counter{0};

  bool try_lock() {
    std::uint32_t expected = free;
    return state.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  void lock() {
    if (try_lock()) return;
    while (state.exchange(contended, std::memory_order_acquire) != free) {
      wakes_one::wait(state, contended);
      if (Habit == woken::says_held && try_lock()) return;
    }
  }
  void unlock() {
    if (state.exchange(free, std::memory_order_release) == contended) wakes_one::wake(state);
  }

  void thread(unsigned) {
    lock();
    counter(RL_INFO) = counter(RL_INFO) + 1;
    unlock();
  }
  void after() {
    RL_ASSERT(counter(RL_INFO) == Threads);
    RL_ASSERT(state.load(std::memory_order_relaxed) == free);
  }
};

TEST(word_lock, excludes_and_wakes) {
  expect_correct_at_random<word_lock_users<2>>(100);
  expect_correct_at_random<word_lock_users<3>>(100);
  expect_correct_always<word_lock_users<2>>(4);
}

TEST(word_lock_mutation, forgetting_the_others_leaves_them_asleep) {
  expect_failure<word_lock_users<3, futex_atomic, woken::says_held>>(rl::test_result_deadlock);
}

TEST(word_lock_mutation, relaxed_orders_do_not_exclude) {
  expect_failure<word_lock_users<2, relaxed_futex_atomic>>(rl::test_result_data_race);
}

}  // namespace
}  // namespace strata::model
