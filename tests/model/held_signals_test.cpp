// SPDX-License-Identifier: Apache-2.0
// A signal that nobody takes is kept for the process; who stops blocking it meanwhile gets it, or
// the one who keeps it finds him: it is taken once, and not forgotten.
#include "explore.hpp"
#include "mutations.hpp"
//
#include <atomic>
#include <cstdint>
#include <mutex>

#include "pthread/basic_held.hpp"

namespace strata::model {
namespace {

class model_lock {
 public:
  void lock() { mutex_.lock(RL_INFO); }
  void unlock() { mutex_.unlock(RL_INFO); }

 private:
  rl::mutex mutex_;
};
using held_lock = std::lock_guard<model_lock>;

// Mutation of a mask's lock: it locks nobody out, and orders nothing.
struct open_lock {
  void lock() { rl::ctx().sched(); }
  void unlock() {}
};

struct one_kind {
  int kept = 0;

  bool add(int) {
    ++kept;
    return true;
  }
  int take(int, int& info) {
    if (kept == 0) return 0;
    info = 1;
    return kept--;
  }
  [[nodiscard]] std::uint64_t bits() const { return kept != 0 ? 1 : 0; }
};

// When who opens his mask asks what is held. Mutation: before, and when he has opened it no more.
enum class asking { with_the_lock, before_it };

// Thread 0 has the signal; the others open their masks.
template <asking Asking = asking::with_the_lock, class MaskLock = model_lock>
struct held_and_masks : rl::test_suite<held_and_masks<Asking, MaskLock>, 3> {
  static constexpr unsigned masks = 2;
  inline static struct { unsigned by_opener = 0, by_holder = 0; } reached;

  detail::posix::basic_held<one_kind, model_lock, held_lock, model_atomic> held;
  MaskLock lock_of_mask[masks];
  model_atomic<bool> is_open[masks];
  unsigned taken_by[masks + 1] = {};

  bool is_open_now(unsigned i) {
    const std::lock_guard<MaskLock> guard(lock_of_mask[i]);
    return is_open[i].load(std::memory_order_relaxed);
  }
  bool take() {
    int info = 0;
    return held.take(1, info) != 0;
  }

  void thread(unsigned self) {
    if (self == 0) {
      held.hold(1);
      for (unsigned i = 0; i < masks; ++i) {
        if (!is_open_now(i)) continue;
        taken_by[0] = take();
        return;
      }
      return;
    }
    if (Asking == asking::before_it) taken_by[self] = take();
    const std::lock_guard<MaskLock> guard(lock_of_mask[self - 1]);
    is_open[self - 1].store(true, std::memory_order_relaxed);
    if (Asking == asking::with_the_lock) taken_by[self] = take();
  }
  void after() {
    RL_ASSERT(taken_by[0] + taken_by[1] + taken_by[2] == 1);
    reached.by_holder += taken_by[0];
    reached.by_opener += taken_by[1] + taken_by[2];
  }
};

TEST(held_signals, one_that_is_held_is_taken_once_by_whoever_can) {
  using model = held_and_masks<>;
  model::reached = {};
  expect_correct_at_random<model>(50);
  EXPECT_GT(model::reached.by_holder, 0U);
  EXPECT_GT(model::reached.by_opener, 0U);
  expect_correct_always<model>(2);
}

TEST(held_signals_mutation, who_asks_before_he_opens_his_mask_may_leave_it_there) {
  expect_failure<held_and_masks<asking::before_it>>(rl::test_result_user_assert_failed);
}

TEST(held_signals_mutation, without_the_masks_locks_each_may_miss_the_other) {
  expect_failure<held_and_masks<asking::with_the_lock, open_lock>>(
      rl::test_result_user_assert_failed);
}

}  // namespace
}  // namespace strata::model
