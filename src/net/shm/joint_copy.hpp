// SPDX-License-Identifier: Apache-2.0
// Who copies which piece, when two processes copy one block together: its owner, who wants it, and
// one helper. The pieces lie in order, and each takes the next that nobody has; so both are busy
// until nothing is left, however fast each of them is and however late the helper comes.
//
//      word_ = turn | helper's piece | it could not copy that | helper at work | pieces begun
//
// All that they have to agree about is in that word. A turn is odd while the block is copied: once
// the owner has closed it no claim of its helper's succeeds, and whoever claims a piece may be sure
// that the block is still there until it says that it is done.
#pragma once
#include <atomic>
#include <cstdint>

#include "strata/detail/cpu.hpp"

namespace strata::net::shm {

// Lives in shared memory, zero at first.
template <template <class> class Atomic>
class joint_copy {
 public:
  static constexpr unsigned pieces_max = 0x7fff;
  static constexpr unsigned none = ~0U;  // no piece

  // ---- the owner, one thread at a time; no turn is open ----

  // The turn, for the helper.
  std::uint32_t open() noexcept {
    // Relaxed: the helper learns of the turn by a message.
    const std::uint32_t turn = (turn_of(word_.load(std::memory_order_relaxed)) + 1) | 1;
    word_.store(made(turn, 0, 0), std::memory_order_relaxed);
    return turn;
  }

  // ---- the owner, in its turn ----

  // The next of so many pieces; none: all are begun.
  unsigned claim(unsigned pieces) noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    // Relaxed: it takes only what nobody else touches.
    while (begun(seen) < pieces) {
      if (word_.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed,
                                      std::memory_order_relaxed))
        return begun(seen);
    }
    return none;
  }

  // Whether the helper touches nothing now. Acquire: what it has copied. Partner: done().
  [[nodiscard]] bool is_alone() const noexcept {
    return (word_.load(std::memory_order_acquire) & at_work) == 0;
  }

  // The piece that the helper could not copy, or with which it was lost; none: it has copied all
  // that it has begun.
  [[nodiscard]] unsigned left_over() const noexcept {
    const std::uint64_t seen = word_.load(std::memory_order_relaxed);
    return (seen & (at_work | failed)) != 0 ? helpers(seen) : none;
  }

  // No claim of this turn succeeds any more.
  void close() noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(seen, made(turn_of(seen) + 1, 0, 0),
                                        std::memory_order_relaxed, std::memory_order_relaxed)) {
    }
  }

  // ---- the helper ----

  // The first piece that it is to copy; none: it comes too late, or all are begun.
  unsigned begin(std::uint32_t turn, unsigned pieces) noexcept { return next(turn, pieces, 0); }
  // One more; none: all are begun, or the turn is over. It is at work all the same.
  unsigned another(std::uint32_t turn, unsigned pieces) noexcept {
    return next(turn, pieces, at_work);
  }
  // Of a turn in which it has begun. Release: what it has copied, and that it reads the block no
  // more. Partner: is_alone().
  void done(std::uint32_t turn, bool could) noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while (turn_of(seen) == turn &&
           !word_.compare_exchange_weak(seen, (seen & ~at_work) | (could ? 0 : failed),
                                        std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

 private:
  static constexpr std::uint64_t at_work = 1U << 15, failed = 1U << 16;
  static constexpr unsigned helpers_shift = 17, turn_shift = 32;

  static constexpr unsigned begun(std::uint64_t w) noexcept {
    return static_cast<unsigned>(w & pieces_max);
  }
  static constexpr unsigned helpers(std::uint64_t w) noexcept {
    return static_cast<unsigned>(w >> helpers_shift & pieces_max);
  }
  static constexpr std::uint32_t turn_of(std::uint64_t w) noexcept {
    return static_cast<std::uint32_t>(w >> turn_shift);
  }
  static constexpr std::uint64_t made(std::uint32_t turn, std::uint64_t helper,
                                      unsigned pieces_begun) noexcept {
    return std::uint64_t{turn} << turn_shift | helper | pieces_begun;
  }

  unsigned next(std::uint32_t turn, unsigned pieces, std::uint64_t now_at_work) noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while (turn_of(seen) == turn && (seen & (at_work | failed)) == now_at_work &&
           begun(seen) < pieces) {
      const unsigned piece = begun(seen);
      const std::uint64_t helper = std::uint64_t{piece} << helpers_shift | at_work;
      // Relaxed: as in claim(); the block and the place for it came with the message.
      if (word_.compare_exchange_weak(seen, made(turn, helper, piece + 1),
                                      std::memory_order_relaxed, std::memory_order_relaxed))
        return piece;
    }
    return none;
  }

  alignas(detail::destructive_bytes) Atomic<std::uint64_t> word_{0};
};

}  // namespace strata::net::shm
