// SPDX-License-Identifier: Apache-2.0
// Our state in the C library's pthread_mutex_t: the lock word in its first word, the owner where it
// has a list of robust mutexes, the kind where static initialisers put it. Robust ones are kinds of
// their own, see robust.hpp.
#pragma once
#include <pthread.h>

#include <atomic>

#include "pthread/wait.hpp"
#include "strata/mutex.hpp"

namespace strata::detail::posix {

class mutex_view {
 public:
  explicit mutex_view(pthread_mutex_t* m) noexcept : m_(m) {}

  static constexpr int destroyed = -1;
  static constexpr int robust = 16;   // added to its type, as the C library does
  static constexpr int protect = 64;  // has a ceiling
  static constexpr int shared = 128;  // lies in memory that processes share
  [[nodiscard]] int kind() const noexcept {
    const int kind = m_->__data.__kind;
    return kind == destroyed ? destroyed : kind & ~shared;
  }
  [[nodiscard]] bool is_shared() const noexcept {
    return m_->__data.__kind != destroyed && (m_->__data.__kind & shared) != 0;
  }
  [[nodiscard]] bool is_robust() const noexcept { return (kind() & ~types) == robust; }
  [[nodiscard]] bool has_ceiling() const noexcept {
    return kind() != destroyed && (kind() & protect) != 0;
  }
  // Of one that is_robust() or has_ceiling().
  [[nodiscard]] int type() const noexcept { return kind() & types; }
  // Of one that has_ceiling(). Relaxed: written with its lock, and who asks without may be told
  // what it was.
  [[nodiscard]] int ceiling() const noexcept {
    return static_cast<int>(ceiling_word().load(std::memory_order_relaxed));
  }
  void set_ceiling(int priority) noexcept {
    ceiling_word().store(static_cast<unsigned>(priority), std::memory_order_relaxed);
  }
  void set_kind(int kind) noexcept { m_->__data.__kind = kind; }
  [[nodiscard]] word_lock& word() const noexcept {
    static_assert(sizeof(word_lock) == sizeof m_->__data.__lock);
    return reinterpret_cast<word_lock&>(m_->__data.__lock);
  }
  // Only the owner finds itself, so no order is needed.
  [[nodiscard]] bool is_mine() const noexcept {
    return owner().load(std::memory_order_relaxed) == myself();
  }
  void take() noexcept { owner().store(const_cast<void*>(myself()), std::memory_order_relaxed); }
  void leave() noexcept { owner().store(nullptr, std::memory_order_relaxed); }
  [[nodiscard]] unsigned& depth() const noexcept { return m_->__data.__count; }
  [[nodiscard]] bool has_owner() const noexcept {
    const int plain = kind() & ~protect;
    return plain == PTHREAD_MUTEX_RECURSIVE || plain == PTHREAD_MUTEX_ERRORCHECK;
  }

  // The word alone; again after a condition variable, for example. False: in time it was not to be
  // had.
  bool lock_word(const deadline& until) {
    if (word().try_lock()) return true;
    polled_wait between("mutex of several processes");
    for (;;) {
      if (!is_shared()) {
        bool locked = false;
        const std::int64_t until_ns = until.to_ns();
        (void)wait_or_give_way(until_ns, [&] {
          locked = word().lock_until(until_ns, until.asked_again(), &until);
          return unparked::woken;
        });
        if (locked) return true;
      } else {
        (void)between.pause(until, false);
        if (word().try_lock()) return true;
      }
      if (until.has_passed()) return false;
    }
  }

 private:
  static constexpr int types = 3;
  [[nodiscard]] const void* myself() const noexcept { return is_shared() ? me_anywhere() : me(); }
  // Where the C library counts who uses it.
  [[nodiscard]] std::atomic_ref<unsigned> ceiling_word() const noexcept {
    return std::atomic_ref(m_->__data.__nusers);
  }
  [[nodiscard]] std::atomic_ref<void*> owner() const noexcept {
    return std::atomic_ref(reinterpret_cast<void*&>(m_->__data.__list.__prev));
  }
  pthread_mutex_t* m_;
};

}  // namespace strata::detail::posix
