// SPDX-License-Identifier: Apache-2.0
// Signals on their way from handlers, on whatever OS threads, to the one OS thread that sees to
// them. Handlers put: they never wait, and may interrupt each other anywhere. One thread takes.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace strata::detail::posix {

// Real-time signals, in order, as many as there is room for. Source: D. Vyukov, "Bounded MPMC
// queue", 2010; of consumers there is one here. A handler that is interrupted in the middle of
// put() by one that puts keeps the later one from being seen until it goes on, and no longer.
template <class Info, template <class> class Atomic = std::atomic, std::uint32_t Room = 256>
class queued_signals {
  // Else a full slot looks like an empty one, or turns that wrap around skip slots.
  static_assert(Room >= 2 && (Room & (Room - 1)) == 0);

 public:
  static constexpr std::uint32_t room = Room;

  queued_signals() noexcept {
    for (std::uint32_t i = 0; i < Room; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
  }

  // False: there is no room.
  bool put(const Info& info) noexcept {
    std::uint32_t at = last_.load(std::memory_order_relaxed);
    for (;;) {
      slot& s = slots_[at % Room];
      // Acquire: the taker has read what was here. Partner: the release in take().
      const std::uint32_t turn = s.turn.load(std::memory_order_acquire);
      if (static_cast<std::int32_t>(turn - at) < 0) return false;
      if (turn != at) {
        at = last_.load(std::memory_order_relaxed);
        // Relaxed: it shares out slots among those who put, what is in them goes by `turn`.
      } else if (last_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed,
                                             std::memory_order_relaxed)) {
        s.info = info;
        // Release: who sees that it is there sees it whole. Partner: the acquire in take().
        s.turn.store(at + 1, std::memory_order_release);
        return true;
      }
    }
  }

  // By the taker alone. False: there is none, or the next one is still being put.
  bool take(Info& info) noexcept {
    slot& s = slots_[first_ % Room];
    // Acquire: with what was put. Partner: the release in put().
    if (s.turn.load(std::memory_order_acquire) != first_ + 1) return false;
    info = s.info;
    // Release: we have read it, and another may be put here. Partner: the acquire in put().
    s.turn.store(first_ + Room, std::memory_order_release);
    ++first_;
    return true;
  }

 private:
  struct slot {
    // n: free for the n-th signal; n + 1: that is there.
    Atomic<std::uint32_t> turn{0};
    Info info;
  };
  std::array<slot, Room> slots_;
  Atomic<std::uint32_t> last_{0};
  std::uint32_t first_ = 0;
};

// Those of the other signals: one of a number is kept, and further ones are the same, as the kernel
// has it. Every put is followed by a take() of its number that returns later, and whose caller sees
// what was done before the put, also where that was refused: it may be all that a handler is told.
template <class Info, template <class> class Atomic = std::atomic, std::size_t Numbers = 32>
class merged_signals {
 public:
  // Below Numbers. False: there is one.
  bool put(std::size_t number, const Info& info) noexcept {
    slot& s = slots_[number];
    state was = s.is.load(std::memory_order_relaxed);
    // Who is refused writes the word, too, and so before take() frees it, which then sees what we
    // have done: who only read it might do so while what we have done is still on its way. Release:
    // for that. Acquire: the taker has read what was here. Partner: the exchange in take().
    while (!s.is.compare_exchange_weak(was, was == nothing ? being_put : was,
                                       std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
    if (was != nothing) return false;
    s.info = info;
    // Release: who sees that it is there sees it whole. An exchange: a store would hide from it
    // those who were refused meanwhile. Partner: the load in take().
    s.is.exchange(there, std::memory_order_release);
    return true;
  }

  // By the taker alone. False: there is none.
  bool take(Info& info) noexcept {
    std::size_t number = 0;
    return take_from(number, info);
  }
  // The same of those from `number` on, which becomes the next one's: whoever begins with 0 and
  // goes on with it takes each once at most.
  bool take_from(std::size_t& number, Info& info) noexcept {
    while (number < Numbers) {
      slot& s = slots_[number++];
      // Acquire: with what was put. Partner: the exchange in put().
      if (s.is.load(std::memory_order_acquire) != there) continue;
      info = s.info;
      // Release: we have read it, and another may be put here. Acquire: what those had done who
      // were refused since. Partner of both: the compare-exchange in put().
      s.is.exchange(nothing, std::memory_order_acq_rel);
      return true;
    }
    return false;
  }

 private:
  enum state : std::uint32_t { nothing, being_put, there };
  struct slot {
    Atomic<state> is{nothing};
    Info info;
  };
  std::array<slot, Numbers> slots_;
};

}  // namespace strata::detail::posix
