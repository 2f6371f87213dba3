// SPDX-License-Identifier: Apache-2.0
// What whoever handles a node's messages holds, one thread at a time. While many come it is locked
// again at once by the one who has just left it, and another thread, which is woken then, finds it
// locked each time, for seconds: it may be the one that tells the neighbours that this node lives.
// So whoever has waited for patience is the next one. As long as it has not had its turn, those who
// come later wait behind it, and try_lock() fails. (Go's sync.Mutex does the same, as its
// "starvation mode".)
#pragma once
#include <atomic>
#include <chrono>
#include <mutex>

namespace strata::cluster {

// `Timed`: std::timed_mutex, but for tests.
template <class Timed>
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

using inbox_mutex = fair_mutex<std::timed_mutex>;

}  // namespace strata::cluster
