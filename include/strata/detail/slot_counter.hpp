// SPDX-License-Identifier: Apache-2.0
// The counting of a sync slot: it fires exactly at the k-th signal, starts again from its reset
// value, and notices a signal too many.
#pragma once
#include <atomic>
#include <cstdint>

namespace strata::detail {

enum class signal_outcome { pending, fired, excess, dead };
enum class increment_outcome { counted, late, too_many };

// One word: the signals still awaited (low half), and how many firings have not begun to run (high
// half). Both change in one step, so whoever ends the frame can see that a fiber of it is still
// queued.
template <template <class> class Atomic = std::atomic>
class slot_counter {
 public:
  slot_counter(std::uint32_t count, std::uint32_t reset) noexcept : reset_(reset) {
    state_.store(count, std::memory_order_relaxed);
  }
  // A signal that arrives after the frame is gone finds `dead` for as long as its memory is not
  // used again.
  ~slot_counter() { state_.store(dead_mark, std::memory_order_relaxed); }

  // Acquire-release: the signal that fires sees what every earlier signaller wrote before
  // signalling. Partner: the other signal()s.
  signal_outcome signal() noexcept {
    std::uint64_t s = state_.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint64_t count = s & count_mask;
      if (count == 0) return signal_outcome::excess;
      if (s == dead_mark) return signal_outcome::dead;
      const bool fires = count == 1;
      const std::uint64_t next = fires ? (s & ~count_mask) + one_firing + reset_ : s - 1;
      if (state_.compare_exchange_weak(s, next, std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
        return fires ? signal_outcome::fired : signal_outcome::pending;
      }
    }
  }

  // More signals to await. `late`: the slot has already fired for the last time; `too_many`: more
  // in all than can be counted. Nothing has happened then.
  increment_outcome increment(std::uint32_t more) noexcept {
    std::uint64_t s = state_.load(std::memory_order_relaxed);
    do {
      const std::uint64_t count = s & count_mask;
      if (count == 0 || s == dead_mark) return increment_outcome::late;
      if (more > count_mask - count) return increment_outcome::too_many;
    } while (!state_.compare_exchange_weak(s, s + more, std::memory_order_acq_rel,
                                           std::memory_order_relaxed));
    return increment_outcome::counted;
  }

  // From now on it never fires: signals and increments are counted and have no effect. False, and
  // nothing has happened, when a firing is queued. Acquire-release: who closes it and ends the slot
  // does so after those who have signalled before. Partner: signal().
  bool close() noexcept {
    std::uint64_t s = state_.load(std::memory_order_relaxed);
    do {
      if (s >= one_firing) return false;
    } while (!state_.compare_exchange_weak(s, closed_count, std::memory_order_acq_rel,
                                           std::memory_order_relaxed));
    return true;
  }

  // INIT_SYNC: before any signal can arrive.
  void init(std::uint32_t count, std::uint32_t reset) noexcept {
    reset_ = reset;
    state_.store(count, std::memory_order_relaxed);
  }

  // A firing begins to run.
  void begin() noexcept {
    if (reset_ == 0) {
      // Fired for the last time: nobody may change the word any more (signal(), increment() and
      // close() refuse), so no exchange is needed.
      state_.store(0, std::memory_order_relaxed);
    } else {
      state_.fetch_sub(one_firing, std::memory_order_relaxed);
    }
  }

  // A firing is queued and has not begun.
  [[nodiscard]] bool queued() const noexcept {
    return state_.load(std::memory_order_relaxed) >= one_firing;
  }
  [[nodiscard]] std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>(state_.load(std::memory_order_relaxed) & count_mask);
  }

 private:
  static constexpr std::uint64_t count_mask = 0xffffffffU;
  static constexpr std::uint64_t one_firing = std::uint64_t{1} << 32;
  static constexpr std::uint64_t dead_mark = ~std::uint64_t{0};
  // As far from the last signal as from the end of the count.
  static constexpr std::uint64_t closed_count = std::uint64_t{1} << 31;

  Atomic<std::uint64_t> state_;
  std::uint32_t reset_;
};

}  // namespace strata::detail
