// SPDX-License-Identifier: Apache-2.0
// Signals of the process that nobody takes now (held_signals.hpp): kept by a lock, and their
// numbers seen without it. They meet with masks, which threads change with locks of their own:
//
//   who has a signal that nobody takes:  hold(), then looks at each mask, with that one's lock
//   who opens a mask:                    opens it with its lock, then asks numbers() or take()
//
// One of the two sees the other, whichever has the mask's lock first.
#pragma once
#include <atomic>
#include <cstdint>

namespace strata::detail::posix {

// Signals: add(info), take(set, info), forget(), bits(), which may be fewer from one time to the
// next. Holding: holds a Lock while it exists.
template <class Signals, class Lock, class Holding, template <class> class Atomic = std::atomic>
class basic_held {
 public:
  template <class Info>
  void hold(const Info& info) noexcept {
    const Holding guard(lock_);
    (void)signals_.add(info);
    note();
  }
  // Relaxed: the masks' locks order it.
  [[nodiscard]] std::uint64_t numbers() const noexcept {
    return numbers_.load(std::memory_order_relaxed);
  }
  // The same as it is by now.
  std::uint64_t look() noexcept {
    if (numbers() == 0) return 0;
    const Holding guard(lock_);
    note();
    return numbers();
  }
  // The number of one of `set`; 0: none.
  template <class Set, class Info>
  int take(const Set& set, Info& info) noexcept {
    if (numbers() == 0) return 0;
    const Holding guard(lock_);
    const int number = signals_.take(set, info);
    note();
    return number;
  }
  // By a process that has one thread; another one, which is not here, may have the lock.
  void forget() noexcept {
    if (lock_.is_held()) lock_.unlock();
    signals_.forget();
    note();
  }

 private:
  void note() noexcept { numbers_.store(signals_.bits(), std::memory_order_relaxed); }

  Lock lock_;
  Signals signals_;
  Atomic<std::uint64_t> numbers_{0};
};

}  // namespace strata::detail::posix
