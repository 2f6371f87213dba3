// SPDX-License-Identifier: Apache-2.0
// The table of all who wait in this process: a waiter is in the queue of its address, which other
// addresses share. Owned by no runtime.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

#include "sync/spin_lock.hpp"
#include "threads/waiter.hpp"

namespace strata::detail {

// Used with its lock.
class alignas(64) waiter_queue {
 public:
  spin_lock lock;

  [[nodiscard]] waiter* first() const noexcept { return first_; }
  // Behind all others; returns when that was, for insert().
  std::uint64_t append(waiter& w) noexcept {
    w.came = ++arrivals_;
    put_behind(last_, w);
    return w.came;
  }
  // One that has been here before, and `came` then: before those that came later, but only so many
  // of them, since there may be thousands. One is enough for whoever is passed by one each time.
  void insert(waiter& w, std::uint64_t came) noexcept {
    constexpr int passes_max = 16;
    waiter* before = last_;
    w.came = came;
    for (int i = 0; i < passes_max && before != nullptr && before->came > came; ++i)
      before = before->previous;
    put_behind(before, w);
  }
  void remove(waiter& w) noexcept {
    set_next(w.previous, w.next);
    (w.next != nullptr ? w.next->previous : last_) = w.previous;
    set_queued(w, false);
  }
  void clear() noexcept {
    first_ = nullptr;
    last_ = nullptr;
  }
  // The next that waits at `address`, from w on.
  static waiter* from(waiter* w, const void* address) noexcept {
    while (w != nullptr && w->address.load(std::memory_order_relaxed) != address) w = w->next;
    return w;
  }

 private:
  void set_next(waiter* of, waiter* next) noexcept { (of != nullptr ? of->next : first_) = next; }
  // Null: in front of all.
  void put_behind(waiter* before, waiter& w) noexcept {
    w.next = before != nullptr ? before->next : first_;
    w.previous = before;
    (w.next != nullptr ? w.next->previous : last_) = &w;
    set_next(before, &w);
    set_queued(w, true);
  }
  static void set_queued(waiter& w, bool is) noexcept {
    w.queued = is;
    if (w.place != nullptr) w.place->here = is ? &w : nullptr;
  }

  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
  std::uint64_t arrivals_ = 0;
};

inline constexpr unsigned waiter_queue_bits = 12;
inline constinit std::array<waiter_queue, 1U << waiter_queue_bits> waiter_queues;
// Runtimes whose waiters are being taken out of all queues, one after the other. Relaxed: changed
// before the first of their locks is taken. Who has two of these and reads 0 has been there before.
inline constinit std::atomic<unsigned> runtimes_given_up{0};

inline waiter_queue& queue_of(const void* address) noexcept {
  const auto a = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
  return waiter_queues[(a * 0x9E37'79B9'7F4A'7C15U) >> (64 - waiter_queue_bits)];
}

}  // namespace strata::detail
