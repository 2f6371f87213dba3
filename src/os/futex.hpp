// SPDX-License-Identifier: Apache-2.0
// Sleep on a 32-bit word until somebody wakes it: the kernel's half of parking.
#pragma once

#include <atomic>
#include <cstdint>

namespace strata::os {

using futex_word = std::atomic<std::uint32_t>;

enum class futex_outcome {
  woken,        ///< by futex_wake, or spuriously: re-check the condition
  changed,      ///< the word did not hold the expected value, so the thread never slept
  timed_out,    ///< the timeout passed
  interrupted,  ///< by a signal handler: re-check the condition
};

inline constexpr std::int64_t futex_forever_ns = -1;

/// Blocks the OS thread while `word` holds `expected`, at most `timeout_ns` nanoseconds
/// (monotonic). The kernel compares and goes to sleep as one step with respect to futex_wake on the
/// same word, so a waker that changes the word first and wakes after is never missed. Orders no
/// memory by itself: read `word` again, with the order you need.
futex_outcome blocking_futex_wait(futex_word& word, std::uint32_t expected,
                                  std::int64_t timeout_ns = futex_forever_ns) noexcept;

/// Wakes at most `count` threads that wait on `word`; returns how many. Never blocks. The word may
/// already be destroyed by a woken thread of an earlier call: the kernel uses only its address.
int futex_wake(futex_word& word, int count) noexcept;

/// The same where sleepers on one word are of several kinds, a bit each: who sleeps is of `kind`,
/// and only those of one of `kinds` are woken. blocking_futex_wait() is of all kinds.
futex_outcome blocking_futex_wait_as(std::uint32_t kind, futex_word& word, std::uint32_t expected,
                                     std::int64_t timeout_ns = futex_forever_ns) noexcept;
int futex_wake_those(std::uint32_t kinds, futex_word& word, int count) noexcept;

/// The same for a word in memory that several processes share.
futex_outcome blocking_futex_wait_shared(futex_word& word, std::uint32_t expected,
                                         std::int64_t timeout_ns = futex_forever_ns) noexcept;
int futex_wake_shared(futex_word& word, int count) noexcept;

/// Blocks the OS thread while `own`, of this process, holds `expected_own` and `shared`, of memory
/// that several share, `expected_shared`. As above for each of them. Needs Linux 5.16:
bool can_wait_on_two() noexcept;
futex_outcome blocking_futex_wait_on_two(futex_word& own, std::uint32_t expected_own,
                                         futex_word& shared,
                                         std::uint32_t expected_shared) noexcept;

}  // namespace strata::os
