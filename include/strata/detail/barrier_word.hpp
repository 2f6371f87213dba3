// SPDX-License-Identifier: Apache-2.0
// Who is missing at a barrier. What is missing in a phase and which phase it is are one word: so an
// arrival counts in the phase that it is told, also where more arrive than are expected.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace strata::detail {

template <template <class> class Atomic = std::atomic>
class barrier_word {
 public:
  using phase_token = std::uint32_t;

  // In each phase.
  constexpr explicit barrier_word(std::int64_t expected) noexcept
      : expected_(expected), now_(static_cast<std::uint64_t>(expected) << missing_at) {}

  struct arrival {
    phase_token phase;
    std::int64_t missing;  // before; below zero: more had come than were expected
    bool is_last;          // and has to begin_next() when it has done what there is to do
  };
  // n of them, which may be too many.
  arrival arrive(std::int64_t n) noexcept {
    // Acquire-release: the last sees what everybody did before. Partner: itself.
    return made_of(
        now_.fetch_sub(static_cast<std::uint64_t>(n) << missing_at, std::memory_order_acq_rel), n);
  }
  // The same; false, and nothing has changed, where fewer are missing, or n is none.
  bool try_arrive(std::int64_t n, arrival& a) noexcept {
    std::uint64_t now = now_.load(std::memory_order_relaxed);
    // As arrive().
    do {
      a = made_of(now, n);
      if (n < 1 || n > a.missing) return false;
    } while (!now_.compare_exchange_weak(now, now - (static_cast<std::uint64_t>(n) << missing_at),
                                         std::memory_order_acq_rel, std::memory_order_relaxed));
    return true;
  }

  // One who is expected in no later phase. Only where it is missing: arrive() follows.
  void drop_one() noexcept { expected_.fetch_sub(1, std::memory_order_relaxed); }
  // Both at once, as try_arrive(). `wait` is called while somebody else does the same, who is a few
  // instructions away from its end.
  template <class Wait>
  bool try_drop(arrival& a, Wait&& wait) noexcept {
    std::uint64_t now = now_.load(std::memory_order_relaxed);
    do {
      for (; (now & dropping) != 0; now = now_.load(std::memory_order_relaxed)) wait();
      a = made_of(now, 1);
      if (a.missing < 1) return false;
    } while (!now_.compare_exchange_weak(now, (now - one_missing) | dropping,
                                         std::memory_order_acq_rel, std::memory_order_relaxed));
    drop_one();
    // Release: that, for whoever is the last. Acquire: what others did, if that is us. Partners:
    // arrive(), try_arrive().
    a.is_last = missing_in(now_.fetch_sub(dropping, std::memory_order_acq_rel)) == 0;
    return true;
  }

  // By the last of a phase. Nobody changes the word meanwhile, as nobody is missing.
  void begin_next() noexcept {
    const std::uint64_t next = (now_.load(std::memory_order_relaxed) + 1) & phases;
    const std::int64_t missing = expected_.load(std::memory_order_relaxed);
    // Release: what was done before the end of the phase. Partner: phase().
    now_.store(static_cast<std::uint64_t>(missing) << missing_at | next, std::memory_order_release);
  }
  [[nodiscard]] phase_token phase() const noexcept {
    return phase_in(now_.load(std::memory_order_acquire));
  }

 private:
  static constexpr unsigned missing_at = 32;
  static constexpr std::uint64_t one_missing = std::uint64_t{1} << missing_at;
  static constexpr std::uint64_t phases = (std::uint64_t{1} << 31) - 1;
  // Somebody has arrived and is about to take itself out of expected_: whoever comes last leaves
  // the end of the phase to it.
  static constexpr std::uint64_t dropping = phases + 1;

  static std::int64_t missing_in(std::uint64_t now) noexcept {
    return static_cast<std::int64_t>(now) >> missing_at;
  }
  static phase_token phase_in(std::uint64_t now) noexcept {
    return static_cast<phase_token>(now & phases);
  }
  static arrival made_of(std::uint64_t before, std::int64_t n) noexcept {
    return {.phase = phase_in(before),
            .missing = missing_in(before),
            .is_last = (before & ~phases) == static_cast<std::uint64_t>(n) << missing_at};
  }

  Atomic<std::int64_t> expected_;
  Atomic<std::uint64_t> now_;
};

}  // namespace strata::detail
