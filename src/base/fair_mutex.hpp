// SPDX-License-Identifier: Apache-2.0
// A mutex that also comes to those who wait while others lock it again and again. With a plain one,
// whoever has just left it is back before a thread that is woken then, for seconds. Here whoever
// has waited for patience is next, but for those who wait for it already: as long as it has not had
// its turn, those who come later wait behind it, or fail. So does Go's sync.Mutex in its starvation
// mode, but here nobody is handed the mutex, and of those who have waited for long, which wait for
// each other, any may be the next.
//
// While somebody has waited for long, try_lock() also fails where nobody holds the mutex, and so
// does try_lock_until() with a time that is past.
#pragma once
#include <atomic>
#include <chrono>
#include <mutex>

namespace strata {

// `Timed`: another one in tests.
template <class Timed = std::timed_mutex>
class fair_mutex {
 public:
  static constexpr auto patience = std::chrono::milliseconds(1);

  void lock() {
    // On this clock, as ThreadSanitizer knows of no other; one that is set back only lets it wait
    // among the others for longer.
    if (try_lock() || try_lock_until(std::chrono::system_clock::now() + patience)) return;
    const std::lock_guard turn(first_);
    somebody_is_first_.store(true, std::memory_order_relaxed);
    mutex_.lock();
    somebody_is_first_.store(false, std::memory_order_relaxed);
  }
  [[nodiscard]] bool try_lock() { return !somebody_is_first() && mutex_.try_lock(); }
  [[nodiscard]] bool try_lock_until(std::chrono::system_clock::time_point t) {
    if (!somebody_is_first()) return mutex_.try_lock_until(t);
    const std::unique_lock turn(first_, t);
    return turn.owns_lock() && mutex_.try_lock_until(t);
  }
  void unlock() { mutex_.unlock(); }

  // Somebody has waited for long. Relaxed: whoever does not see it yet goes first once more.
  [[nodiscard]] bool somebody_is_first() const noexcept {
    return somebody_is_first_.load(std::memory_order_relaxed);
  }

 private:
  Timed mutex_;
  std::atomic<bool> somebody_is_first_{false};
  std::timed_mutex first_;  // before mutex_
};

}  // namespace strata
