// SPDX-License-Identifier: Apache-2.0
// Robust mutexes: a thread or process that ends with one leaves it to whoever locks it next, and
// that one is told.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pthread/mutex.hpp"

namespace strata::detail::posix {

struct record;

// Called for mutexes of which mutex_view::is_robust() is true. One of a process's own threads is a
// lock word, as others are, and its owner's record. Of one that processes share the owner's word is
// the lock, so it says at any time who has it: a process may end between two instructions.
class robust_mutex {
 public:
  explicit robust_mutex(pthread_mutex_t* m) noexcept : m_(m) {}

  // As POSIX's functions, with their errors. ENOMEM: the caller's list cannot grow.
  int lock(const deadline& until);
  int try_lock();
  int unlock() noexcept;
  int make_consistent() noexcept;

  [[nodiscard]] bool is_held() const noexcept;
  [[nodiscard]] bool is_of(const record& r) const noexcept;
  [[nodiscard]] bool is_mine() const noexcept;

  // For a condition variable, by the owner. Gives it up but for its lock.
  void retire() noexcept;
  // And the lock: the last access.
  void release() noexcept;
  // Again, as deep. 0, EOWNERDEAD, or ENOTRECOVERABLE and not locked.
  int relock(unsigned depth);

  // Its owner, r, ends.
  void abandon() noexcept;

 private:
  // Changed by the owner; `lost` is for ever.
  enum class condition : std::uint16_t { consistent, inconsistent, lost };
  // Where the C library has what we need not, behind what mutex_view reads.
  struct in_mutex {
    char before[offsetof(__pthread_mutex_s, __spins)];
    std::atomic<condition> state;
    std::atomic<std::uintptr_t> owner;
  };
  static_assert(offsetof(in_mutex, state) == offsetof(__pthread_mutex_s, __spins));
  static_assert(offsetof(in_mutex, owner) == offsetof(__pthread_mutex_s, __list));
  [[nodiscard]] std::atomic<condition>& state() const noexcept { return fields().state; }
  [[nodiscard]] std::atomic<std::uintptr_t>& owner() const noexcept { return fields().owner; }
  [[nodiscard]] in_mutex& fields() const noexcept { return *reinterpret_cast<in_mutex*>(m_); }
  [[nodiscard]] mutex_view view() const noexcept { return mutex_view(m_); }
  // What is lost stays so; who sees it early needs nothing else of it, so no order.
  [[nodiscard]] bool is_lost() const noexcept {
    return state().load(std::memory_order_relaxed) == condition::lost;
  }
  [[nodiscard]] std::uintptr_t name_of(const record& r) const noexcept;

  int lock_again() noexcept;
  bool try_take(const record& r) noexcept;
  bool take_until(const record& r, const deadline& until);
  int taken(record& r);
  void mark_inconsistent() noexcept;

  pthread_mutex_t* m_;
};

// Those that r has are left to others.
void abandon_robust(record& r) noexcept;
// In the child of a fork, which has none of those that processes share.
void forget_shared_robust(record& r) noexcept;

}  // namespace strata::detail::posix
