// SPDX-License-Identifier: Apache-2.0
// One wait of one thread, as the table of waiters sees it. It lies on the waiter's stack.
#pragma once
#include <atomic>
#include <cstdint>

#include "context/stack.hpp"
#include "os/futex.hpp"
#include "sched/timers.hpp"
#include "strata/detail/parking.hpp"

namespace strata::detail {

// Whether somebody waits there now. Takes the bucket's lock.
[[nodiscard]] bool is_awaited(const void* address) noexcept;

struct thread_block;

struct waiter : timers::entry {
  static constexpr std::uint32_t waiting = 0;  // everything else is an `unparked`

  waiter* next = nullptr;
  waiter* previous = nullptr;
  bool queued = false;     // with the bucket's lock
  std::uint64_t came = 0;  // likewise: when, as waiter_queue counts
  bool heeds_interruption = false;
  std::uint32_t kinds = parking::every_kind;
  parked_place* place = nullptr;  // says that it is queued
  const parking* how = nullptr;
  // Under which it is queued; changed with the locks of both buckets.
  std::atomic<const void*> address{nullptr};
  stack* who = nullptr;           // null: a thread from outside, which sleeps on `state`
  scheduler* home = nullptr;      // who's; here, so that its own lines are left alone with the lock
  thread_block* block = nullptr;  // by way of which others can end the wait
  // Decided once, by whoever makes it something else than `waiting`.
  os::futex_word state{waiting};

  // False when somebody else has decided before. A waiter on a stack exists until it is continued,
  // one from outside may be gone when this returns.
  bool decide(unparked why) noexcept {
    std::uint32_t expected = waiting;
    // Release: the waiter sees what we did before. Partner: park().
    return state.compare_exchange_strong(expected, static_cast<std::uint32_t>(why),
                                         std::memory_order_acq_rel, std::memory_order_acquire);
  }
};

// Decides and continues w; false when somebody else did.
bool wake(waiter& w, unparked why) noexcept;

}  // namespace strata::detail
