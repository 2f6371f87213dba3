// SPDX-License-Identifier: Apache-2.0
// A futex under Relacy: compare and sleep are one step, waking orders no memory, and sleepers wake
// up for no reason now and then.
#pragma once
#include "relacy_atomic.hpp"
//
#include <atomic>

namespace strata::model {

// An atomic that threads can sleep on.
template <class T, strength Strength>
class futex_word : public basic_atomic<T, Strength> {
 public:
  using basic_atomic<T, Strength>::basic_atomic;
  rl::waitset<4> waiting;
};

template <class T>
using futex_atomic = futex_word<T, strength::as_written>;
template <class T>
using acquire_release_futex_atomic = futex_word<T, strength::acquire_release>;
template <class T>
using relaxed_futex_atomic = futex_word<T, strength::relaxed>;

struct model_futex {
  template <class Word, class T>
  static void wait(Word& word, T expected, const code_place& at = {}) {
    // The kernel sees the newest value, as an exchange does; nothing else runs before we sleep.
    T now = ~T{};
    word.compare_exchange_strong(now, now, std::memory_order_relaxed, std::memory_order_relaxed,
                                 at);
    if (now == expected) sleep(word, at);
  }
  template <class Word>
  static void wake_all(Word& word, const code_place& at = {}) {
    rl::ctx().sched();
    word.waiting.unpark_all(rl::ctx(), at.info);
  }

 protected:
  template <class Word>
  static void sleep(Word& word, const code_place& at) {
    const bool timed = false, switch_to_woken = false;
    // Not when all schedules are tried: there would be no end of them.
    const bool spurious_wakeups = rl::ctx().is_random_sched();
    word.waiting.park_current(rl::ctx(), timed, spurious_wakeups, switch_to_woken, at.info);
  }
};

// Mutation: sleeps without looking.
struct blind_futex : model_futex {
  template <class Word, class T>
  static void wait(Word& word, T, const code_place& at = {}) {
    rl::ctx().sched();
    sleep(word, at);
  }
};

// Mutation: wakes one thread, though a place's own thread and its guest sleep on the same word.
struct single_futex : model_futex {
  template <class Word>
  static void wake_all(Word& word, const code_place& at = {}) {
    rl::ctx().sched();
    word.waiting.unpark_one(rl::ctx(), at.info);
  }
};

}  // namespace strata::model
