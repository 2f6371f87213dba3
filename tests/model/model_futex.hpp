// SPDX-License-Identifier: Apache-2.0
// A futex under Relacy: compare and sleep are one step, waking orders no memory, and sleepers wake
// up for no reason now and then.
#pragma once
#include "relacy_atomic.hpp"
//
#include <atomic>

#include "sync/idle_set.hpp"

namespace strata::model {

// An atomic that threads can sleep on.
template <class T, strength Strength>
class futex_word : public basic_atomic<T, Strength> {
 public:
  using basic_atomic<T, Strength>::basic_atomic;
  rl::waitset<4> waiting;
  rl::waitset<4> waiting_guest;  // of a place, where its own thread may wait as well
  // Of model_futex alone: how often somebody was to be woken here, and where one sleeps who waits
  // for another word, too.
  unsigned wakes = 0;
  rl::waitset<4>* elsewhere = nullptr;
};

template <class T>
using futex_atomic = futex_word<T, strength::as_written>;
template <class T>
using fenced_futex_atomic = futex_word<T, strength::with_fences>;
template <class T>
using acquire_release_futex_atomic = futex_word<T, strength::acquire_release>;
template <class T>
using relaxed_futex_atomic = futex_word<T, strength::relaxed>;

// As C++ has it, and Relacy has not: a compare-exchange that fails is no more than a load, which
// may see an older value: with the order that the code asks for, or relaxed.
enum class failing { as_written, relaxed };
template <class T, failing Order>
class loading_futex_word : public futex_word<T, strength::as_written> {
  using order = std::memory_order;

 public:
  using futex_word<T, strength::as_written>::futex_word;

  bool compare_exchange_strong(T& expected, T value, order success, order failure,
                               const code_place& at = {}) {
    const T now = this->load(Order == failing::relaxed ? order::relaxed : failure, at);
    if (now != expected) {
      expected = now;
      return false;
    }
    return futex_word<T, strength::as_written>::compare_exchange_strong(expected, value, success,
                                                                        failure, at);
  }
};
template <class T>
using loading_futex_atomic = loading_futex_word<T, failing::as_written>;
template <class T>
using stale_futex_atomic = loading_futex_word<T, failing::relaxed>;

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
    ++word.wakes;
    word.waiting.unpark_all(rl::ctx(), at.info);
    if (word.elsewhere != nullptr) word.elsewhere->unpark_all(rl::ctx(), at.info);
  }
  // The same where two threads are told apart.
  template <class Word, class T>
  static void wait(Word& word, T expected, detail::sleeper who, const code_place& at = {}) {
    T now = ~T{};
    word.compare_exchange_strong(now, now, std::memory_order_relaxed, std::memory_order_relaxed,
                                 at);
    if (now == expected) sleep(word, at, who);
  }
  template <class Word>
  static void wake(Word& word, detail::sleeper who, const code_place& at = {}) {
    rl::ctx().sched();
    waiting_as(word, who).unpark_all(rl::ctx(), at.info);
  }
  // Only one thread waits for two words, and always for the same.
  template <class Word, class T>
  static void wait_on_two(Word& own, T expected_own, Word& other, T expected,
                          const code_place& at = {}) {
    own.elsewhere = &other.waiting;
    const unsigned wakes = own.wakes;
    T now = ~T{};
    own.compare_exchange_strong(now, now, std::memory_order_relaxed, std::memory_order_relaxed, at);
    if (now != expected_own) return;
    now = ~T{};
    other.compare_exchange_strong(now, now, std::memory_order_relaxed, std::memory_order_relaxed,
                                  at);
    // The kernel wakes who has begun to wait for the first while it looks at the second.
    if (now == expected && own.wakes == wakes) sleep(other, at);
  }

 protected:
  template <class Word>
  static auto& waiting_as(Word& word, detail::sleeper who) {
    return who == detail::sleeper::guest ? word.waiting_guest : word.waiting;
  }
  template <class Word>
  static void sleep(Word& word, const code_place& at,
                    detail::sleeper who = detail::sleeper::own_thread) {
    const bool timed = false, switch_to_woken = false;
    // Not when all schedules are tried: there would be no end of them.
    const bool spurious_wakeups = rl::ctx().is_random_sched();
    waiting_as(word, who).park_current(rl::ctx(), timed, spurious_wakeups, switch_to_woken,
                                       at.info);
  }
};

// Mutation: sleeps without looking.
struct blind_futex : model_futex {
  template <class Word, class T>
  static void wait(Word& word, T, detail::sleeper who, const code_place& at = {}) {
    rl::ctx().sched();
    sleep(word, at, who);
  }
};

// Mutation: wakes the place's own thread, whoever it is that sleeps in the place.
struct own_threads_futex : model_futex {
  template <class Word>
  static void wake(Word& word, detail::sleeper, const code_place& at = {}) {
    model_futex::wake(word, detail::sleeper::own_thread, at);
  }
};

// For loading_futex_word: the kernel sees the newest value.
struct newest_futex : model_futex {
  template <class T, failing Order>
  static void wait(loading_futex_word<T, Order>& word, T expected, detail::sleeper who,
                   const code_place& at = {}) {
    futex_word<T, strength::as_written>& whole = word;
    model_futex::wait(whole, expected, who, at);
  }
};

}  // namespace strata::model
