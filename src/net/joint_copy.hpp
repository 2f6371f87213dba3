// SPDX-License-Identifier: Apache-2.0
// Who copies which piece, when two processes copy one block together: its owner, who wants it, from
// the front, and one helper from the back, until they meet; so both are busy until nothing is left,
// however fast each of them is and however late the helper comes, and either goes through memory in
// one direction.
//
//      word_ = turn | helper could not | helper at work | pieces the helper began | the owner began
//
// All that they have to agree about is in that word. The owner is at the block until all pieces are
// begun and the helper is not at work: no claim succeeds after that, and a helper whose call comes
// late finds that its turn is over.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "strata/detail/cpu.hpp"

namespace strata::net {

// Lives in shared memory, zero at first.
template <template <class> class Atomic>
class joint_copy {
 public:
  static constexpr unsigned pieces_max = 0x7fff;
  static constexpr unsigned none = ~0U;  // no piece

  // ---- the owner, one thread at a time ----

  // Begins. The turn, for the helper.
  std::uint32_t open() noexcept {
    // Relaxed: the helper learns of the turn by a message.
    const std::uint32_t turn = turn_of(word_.load(std::memory_order_relaxed)) + 1;
    word_.store(std::uint64_t{turn} << turn_shift, std::memory_order_relaxed);
    return turn;
  }

  // The next of so many pieces; none: all are begun. To be called until then, also by who wants no
  // more of them: a helper could begin one.
  unsigned claim(unsigned pieces) noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    // Relaxed: it takes only what nobody else touches.
    while (owners(seen) + helpers(seen) < pieces) {
      if (word_.compare_exchange_weak(seen, seen + owners_one, std::memory_order_relaxed,
                                      std::memory_order_relaxed))
        return owners(seen);
    }
    return none;
  }

  // Whether the helper touches nothing any more, all being begun. Acquire: what it has copied.
  // Partner: done().
  [[nodiscard]] bool is_alone() const noexcept {
    return (word_.load(std::memory_order_acquire) & at_work) == 0;
  }

  // Of so many, the piece that the helper could not copy, or with which it was lost; none: it has
  // copied all that it has begun. `pieces` if that is none that there is: the word is in the memory
  // of others, too.
  [[nodiscard]] unsigned left_over(unsigned pieces) const noexcept {
    const std::uint64_t seen = word_.load(std::memory_order_relaxed);
    if ((seen & (at_work | failed)) == 0) return none;
    return pieces - std::min(pieces, helpers(seen));
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
  static constexpr unsigned helpers_shift = 15, turn_shift = 32;
  static constexpr std::uint64_t owners_one = 1, helpers_one = 1U << helpers_shift,
                                 at_work = 1U << 30, failed = 1U << 31;

  static constexpr unsigned owners(std::uint64_t w) noexcept {
    return static_cast<unsigned>(w & pieces_max);
  }
  static constexpr unsigned helpers(std::uint64_t w) noexcept {
    return static_cast<unsigned>(w >> helpers_shift & pieces_max);
  }
  static constexpr std::uint32_t turn_of(std::uint64_t w) noexcept {
    return static_cast<std::uint32_t>(w >> turn_shift);
  }
  unsigned next(std::uint32_t turn, unsigned pieces, std::uint64_t now_at_work) noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while (turn_of(seen) == turn && (seen & (at_work | failed)) == now_at_work &&
           owners(seen) + helpers(seen) < pieces) {
      // Relaxed: as in claim(); the block and the place for it came with the message.
      if (word_.compare_exchange_weak(seen, (seen | at_work) + helpers_one,
                                      std::memory_order_relaxed, std::memory_order_relaxed))
        return pieces - 1 - helpers(seen);
    }
    return none;
  }

  alignas(detail::destructive_bytes) Atomic<std::uint64_t> word_{0};
};

}  // namespace strata::net
