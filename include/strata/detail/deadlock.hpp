// SPDX-License-Identifier: Apache-2.0
// Who holds and who waits for each lock, recorded while options::detect_deadlock asks for it.
#pragma once
#include <atomic>

namespace strata::detail {

// Set once, never cleared: somebody may hold something that was recorded.
extern constinit std::atomic<bool> locks_are_watched;

inline bool watches_locks() noexcept { return locks_are_watched.load(std::memory_order_relaxed); }

// The calling thread has got `lock`; is about to release it.
void lock_taken(const void* lock) noexcept;
void lock_released(const void* lock) noexcept;
// The calling thread waits for `lock` without a deadline. Ends the program with status 1 when that
// can never end: those who hold it wait, directly or not, for one that the caller holds.
void lock_awaited(const void* lock) noexcept;
void lock_no_longer_awaited() noexcept;

}  // namespace strata::detail
