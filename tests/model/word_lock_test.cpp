// SPDX-License-Identifier: Apache-2.0
// The mutex in one word: it excludes, whoever waits is woken, and who was woken in vain too often
// is handed it. The steps are those of strata/detail/word_lock.hpp and threads/word_lock.cpp, and
// have to follow them, but for the pauses before it waits. Threads park in
// queues, each with its lock, as in the parking lot.
#include "explore.hpp"
#include "model_futex.hpp"
#include "mutations.hpp"

namespace strata::model {
namespace {

enum class parked { refused, woken, gave_up };

// First come, first woken. What is done before a thread is woken it sees.
template <unsigned Threads>
class parking_queue {
 public:
  // Who gives up does so as soon as it waits, unless it has been woken by then.
  template <class Still>
  parked park(unsigned me, const Still& still, bool gives_up) {
    lock_.lock(RL_INFO);
    const bool waits = still();
    if (waits) {
      woken_[me].store(0, std::memory_order_relaxed);
      waiting_[count_++] = me;
    }
    lock_.unlock(RL_INFO);
    if (!waits) return parked::refused;
    if (gives_up && take_out(me)) return parked::gave_up;
    while (woken_[me].load(std::memory_order_acquire) == 0) model_futex::wait(woken_[me], 0U);
    return parked::woken;
  }
  // False: there was none, and otherwise() has been called with the queue locked.
  template <class Otherwise>
  bool unpark_one_or(const Otherwise& otherwise) {
    lock_.lock(RL_INFO);
    const bool found = count_ != 0;
    const unsigned first = waiting_[0];
    if (found) {
      remove(0);
      woken_[first].store(1, std::memory_order_release);
    } else {
      otherwise();
    }
    lock_.unlock(RL_INFO);
    if (found) model_futex::wake_all(woken_[first]);
    return found;
  }

 private:
  void remove(unsigned at) {
    for (unsigned i = at + 1; i < count_; ++i) waiting_[i - 1] = waiting_[i];
    --count_;
  }
  bool take_out(unsigned me) {
    lock_.lock(RL_INFO);
    unsigned at = 0;
    while (at < count_ && waiting_[at] != me) ++at;
    const bool found = at < count_;
    if (found) remove(at);
    lock_.unlock(RL_INFO);
    return found;
  }
  rl::mutex lock_;
  unsigned waiting_[Threads] = {};
  unsigned count_ = 0;
  futex_atomic<std::uint32_t> woken_[Threads];
};

// Mutations: who takes it forgets that others may wait; who is handed it finds it free as well; it
// is freed when the queue of those who insist is not locked any more.
enum class lock_habit { as_it_is, forgets_others, frees_what_it_hands_over, frees_it_later };

// Each locks that often. Patience: how often it is woken in vain before it insists. The first so
// many give up when they have waited a second time.
template <int Threads, int Times, int Patience, template <class> class Atomic = model_atomic,
          lock_habit Habit = lock_habit::as_it_is, unsigned Impatient = 0>
struct word_lock_users
    : rl::test_suite<word_lock_users<Threads, Times, Patience, Atomic, Habit, Impatient>, Threads> {
  static constexpr std::uint32_t free = 0, held = 1, contended = 2, starved = 3;
  inline static struct {
    unsigned handed_over = 0, nobody_insists = 0, gave_up = 0, impatient_got_it = 0;
  } reached;

  Atomic<std::uint32_t> state{free};
  parking_queue<Threads> here;
  parking_queue<Threads> gate;
  rl::var<int> counter{0};
  int locked[Threads] = {};

  bool try_lock() {
    std::uint32_t expected = free;
    return state.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  bool take_or_mark(std::uint32_t mark) {
    std::uint32_t seen = state.load(std::memory_order_relaxed);
    const std::uint32_t taken = Habit == lock_habit::forgets_others ? held : contended;
    for (;;) {
      if (seen != free && seen >= mark) return false;
      if (state.compare_exchange_weak(seen, seen == free ? taken : mark, std::memory_order_acquire,
                                      std::memory_order_relaxed))
        return seen == free;
    }
  }
  bool lock(unsigned me) {
    if (try_lock()) return true;
    for (int in_vain = 0;; ++in_vain) {
      const bool insists = in_vain >= Patience;
      if (take_or_mark(insists ? starved : contended)) return true;
      const auto still = [this, insists] {
        const std::uint32_t now = state.load(std::memory_order_relaxed);
        return insists ? now == starved : now >= contended;
      };
      const bool gives_up = me < Impatient && in_vain > 0;
      const parked how = (insists ? gate : here).park(me, still, gives_up);
      if (how == parked::gave_up) {
        ++reached.gave_up;
        return false;
      }
      if (insists && how == parked::woken) {  // it is ours
        if (gives_up) ++reached.impatient_got_it;
        return true;
      }
    }
  }
  void release() { state.store(free, std::memory_order_release); }
  void unlock() {
    std::uint32_t expected = held;
    if (state.compare_exchange_strong(expected, free, std::memory_order_release,
                                      std::memory_order_relaxed))
      return;
    std::uint32_t seen = state.load(std::memory_order_relaxed);
    while (seen != starved) {
      if (!state.compare_exchange_weak(seen, free, std::memory_order_release,
                                       std::memory_order_relaxed))
        continue;
      if (seen == contended) here.unpark_one_or([] {});
      return;
    }
    if (Habit == lock_habit::frees_what_it_hands_over) release();
    const bool handed = gate.unpark_one_or([this] {
      if (Habit != lock_habit::frees_it_later) release();
    });
    if (handed) {
      ++reached.handed_over;
      return;
    }
    ++reached.nobody_insists;
    if (Habit == lock_habit::frees_it_later) release();
    here.unpark_one_or([] {});
  }

  void thread(unsigned me) {
    for (int i = 0; i < Times; ++i) {
      if (!lock(me)) continue;
      ++locked[me];
      counter(RL_INFO) = counter(RL_INFO) + 1;
      unlock();
    }
  }
  void after() {
    int all = 0;
    for (unsigned i = 0; i < unsigned{Threads}; ++i) {
      RL_ASSERT(i < Impatient || locked[i] == Times);
      all += locked[i];
    }
    RL_ASSERT(counter(RL_INFO) == all);
    const std::uint32_t left = state.load(std::memory_order_relaxed);
    RL_ASSERT(left == free);
  }
};

TEST(word_lock, excludes_and_wakes) {
  constexpr int never = 100;
  expect_correct_at_random<word_lock_users<2, 1, never>>(50);
  expect_correct_at_random<word_lock_users<3, 1, never>>(50);
  expect_correct_always<word_lock_users<2, 1, never>>(4);
}

TEST(word_lock, is_handed_to_who_was_woken_in_vain) {
  using model = word_lock_users<3, 2, 1>;
  model::reached = {};
  expect_correct_at_random<model>(50);
  EXPECT_GT(model::reached.handed_over, 0U);
  EXPECT_GT(model::reached.nobody_insists, 0U);
  expect_correct_at_random<word_lock_users<3, 2, 0>>(50);
  expect_correct_always<word_lock_users<2, 1, 0>>(4);
}

// With a deadline one insists as well, and may give up while it does.
TEST(word_lock, is_handed_to_nobody_who_gives_up) {
  using model = word_lock_users<3, 2, 1, model_atomic, lock_habit::as_it_is, 2>;
  model::reached = {};
  expect_correct_at_random<model>(50);
  EXPECT_GT(model::reached.gave_up, 0U);
  EXPECT_GT(model::reached.impatient_got_it, 0U);
  expect_correct_at_random<word_lock_users<3, 2, 1, model_atomic, lock_habit::as_it_is, 3>>(50);
  expect_correct_always<word_lock_users<2, 1, 0, model_atomic, lock_habit::as_it_is, 1>>(4);
}

TEST(word_lock_mutation, forgetting_the_others_leaves_them_asleep) {
  expect_failure<word_lock_users<3, 1, 100, model_atomic, lock_habit::forgets_others>>(
      rl::test_result_deadlock);
}

TEST(word_lock_mutation, relaxed_orders_do_not_exclude) {
  expect_failure<word_lock_users<2, 1, 100, relaxed_atomic>>(rl::test_result_data_race);
}

TEST(word_lock_mutation, what_is_handed_over_and_free_has_two_owners) {
  expect_failure<word_lock_users<3, 2, 0, model_atomic, lock_habit::frees_what_it_hands_over>>(
      rl::test_result_data_race);
}

TEST(word_lock_mutation, freeing_it_when_somebody_begins_to_insist_leaves_him_asleep) {
  expect_failure<word_lock_users<3, 2, 0, model_atomic, lock_habit::frees_it_later>>(
      rl::test_result_deadlock);
}

}  // namespace
}  // namespace strata::model
