// SPDX-License-Identifier: Apache-2.0
// A lock in one word. Source: U. Drepper, "Futexes are tricky", 2011, mutex 2. Whoever comes may
// take it before one that was woken for it, which is fast; but who was woken in vain a few times is
// handed it (as in Go's sync.Mutex), so nobody starves.
#pragma once
#include <atomic>
#include <cstdint>

#include "strata/detail/deadlock.hpp"
#include "strata/detail/parking.hpp"
#include "strata/detail/use_check.hpp"

namespace strata::detail {

class word_lock {
 public:
  bool try_lock() noexcept {
    std::uint32_t expected = free;
    // Acquire: after whoever unlocked. Partner: unlock().
    if (!state_.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                        std::memory_order_relaxed))
      return false;
    if (watches_locks()) [[unlikely]]
      lock_taken(this);
    return true;
  }
  void lock() {
    if (!try_lock()) [[unlikely]]
      lock_slowly(parking::never);
  }
  // As parking's, with its look_again.
  bool lock_until(std::int64_t deadline_ns,
                  std::int64_t (*look_again)(const void*) noexcept = nullptr,
                  const void* argument = nullptr) {
    return try_lock() || lock_slowly(deadline_ns, look_again, argument);
  }
  void unlock() noexcept {
    begin_unlock();
    end_unlock();
  }
  // unlock() in two halves, for who can be woken before the lock is free: then it waits for the
  // lock, and must not be taken for one who waits for itself. The first by its holder, who may take
  // it back by cancel_unlock(); the second by anybody.
  void begin_unlock() noexcept {
    if (watches_locks()) [[unlikely]]
      lock_released(this);
  }
  void cancel_unlock() noexcept {
    if (watches_locks()) [[unlikely]]
      lock_taken(this);
  }
  void end_unlock() noexcept {
    std::uint32_t expected = held;
    if (!state_.compare_exchange_strong(expected, free, std::memory_order_release,
                                        std::memory_order_relaxed)) [[unlikely]]
      unlock_slowly();
  }
  [[nodiscard]] bool is_held() const noexcept {
    return state_.load(std::memory_order_relaxed) != free;
  }
  // At the end of a lock that consists of this.
  void check_unused(const char* kind) const noexcept {
    check_end(kind, this, is_held(), this, gate());
  }

 private:
  static constexpr std::uint32_t free = 0;
  static constexpr std::uint32_t held = 1;
  static constexpr std::uint32_t contended = 2;  // held, and somebody may wait
  static constexpr std::uint32_t starved = 3;    // and somebody waits to be handed it

  bool lock_slowly(std::int64_t deadline_ns,
                   std::int64_t (*look_again)(const void*) noexcept = nullptr,
                   const void* argument = nullptr);
  bool take_or_mark(std::uint32_t mark) noexcept;
  void unlock_slowly() noexcept;
  [[nodiscard]] const void* gate() const noexcept {
    return reinterpret_cast<const char*>(this) + 1;
  }
  static bool is_contended(void* self);
  static bool is_starved(void* self);
  static void release(void* self) noexcept;

  std::atomic<std::uint32_t> state_{free};
};

}  // namespace strata::detail
