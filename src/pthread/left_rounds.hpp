// SPDX-License-Identifier: Apache-2.0
// What handlers leave to the taker of signals (left_signals.hpp) it passes on in rounds. Here is
// how those know who wait until what they left, or were told of, has been passed on, and no longer:
// more may be left all the time.
#pragma once
#include <atomic>
#include <cstdint>

#include "os/futex.hpp"

namespace strata::detail::posix {

struct moment_futex {
  // For a moment at most: who waits has something else to look at, too.
  static void wait(os::futex_word& word, std::uint32_t seen) noexcept {
    constexpr std::int64_t moment_ns = 100'000;
    os::blocking_futex_wait(word, seen, moment_ns);
  }
  static void wake_all(os::futex_word& word) noexcept { os::futex_wake(word, INT32_MAX); }
};

template <template <class> class Atomic = std::atomic, class Futex = moment_futex>
class left_rounds {
 public:
  // ---- by who leaves something ----
  // Before it is put. Relaxed: who must not miss it runs on this OS thread, or was told by one that
  // has since.
  void one_is_left() noexcept { left_.fetch_add(1, std::memory_order_relaxed); }

  // ---- by who waits ----
  // The next round passes on whatever has been put by now. Release, and a change of the word though
  // it stays what it is: that round's, which comes after it, sees what was put. Partner: begin().
  std::uint32_t by_now() noexcept {
    return rounds_begun_.fetch_add(0, std::memory_order_release) + 1;
  }
  // False: it has been passed on. Else something has happened, or a moment has passed.
  bool await(std::uint32_t round) noexcept {
    // Acquire, and before the looks: what happens since wakes us. Partner: tell().
    const std::uint32_t seen = events_.load(std::memory_order_acquire);
    // Acquire, both: what the handlers did. Partners: one_is_passed_on(), end().
    if (left_.load(std::memory_order_acquire) == 0) return false;
    const std::uint32_t ended = rounds_ended_.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(ended - round) >= 0) return false;
    Futex::wait(events_, seen);
    return true;
  }

  // ---- by the taker ----
  // Acquire: with what was put before. Partner: by_now().
  std::uint32_t begin() noexcept {
    return rounds_begun_.fetch_add(1, std::memory_order_acquire) + 1;
  }
  // Also by who has left it, if there was no room: then it stands for nothing.
  void one_is_passed_on() noexcept {
    // Release: with what its handler did. Partner: await().
    if (left_.fetch_sub(1, std::memory_order_release) == 1) tell();
  }
  void end(std::uint32_t round) noexcept {
    // Release: with what the handlers did. Partner: await().
    rounds_ended_.store(round, std::memory_order_release);
    tell();
  }
  // Of what concerns those who wait: something is offered to a thread, or passed on.
  void tell() noexcept {
    // Release: who sees the count sees what is new. Partner: await().
    events_.fetch_add(1, std::memory_order_release);
    Futex::wake_all(events_);
  }

 private:
  Atomic<std::uint32_t> events_{0};
  Atomic<std::uint32_t> left_{0};  // and not passed on yet
  Atomic<std::uint32_t> rounds_begun_{0};
  Atomic<std::uint32_t> rounds_ended_{0};
};

}  // namespace strata::detail::posix
