// SPDX-License-Identifier: Apache-2.0
// The word on which one waiter and one completer meet: whoever comes second continues the waiter.
#pragma once
#include <atomic>
#include <cstdint>

namespace strata::detail {

template <class Waiter, template <class> class Atomic = std::atomic>
class join_word {
 public:
  // By the waiter, when it can be continued by another thread. False when the completer was faster:
  // then the waiter goes on by itself, and sees what the completer did.
  [[nodiscard]] bool commit(Waiter& w) noexcept {
    std::uintptr_t expected = nobody;
    return state_.compare_exchange_strong(expected, reinterpret_cast<std::uintptr_t>(&w),
                                          std::memory_order_acq_rel, std::memory_order_acquire);
  }

  // By the completer, once. Returns the waiter that is to be continued, null when none has
  // committed. Without a waiter `this` may be gone when it returns.
  [[nodiscard]] Waiter* complete() noexcept {
    // Release: the waiter sees our results. Acquire: we see what the waiter saved of itself.
    // Partner: commit(), done().
    const std::uintptr_t before = state_.exchange(completed, std::memory_order_acq_rel);
    return before == nobody ? nullptr : reinterpret_cast<Waiter*>(before);
  }

  [[nodiscard]] bool done() const noexcept {
    return state_.load(std::memory_order_acquire) == completed;
  }

 private:
  static constexpr std::uintptr_t nobody = 0;
  static constexpr std::uintptr_t completed = 1;

  Atomic<std::uintptr_t> state_{nobody};
};

}  // namespace strata::detail
