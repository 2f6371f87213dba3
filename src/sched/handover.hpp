// SPDX-License-Identifier: Apache-2.0
// A place for one thing that anybody may put there and anybody take: one word, no lock. It can be
// closed for a while, and then takes nothing.
#pragma once
#include <atomic>
#include <cstdint>

namespace strata::detail {

template <class T, template <class> class Atomic = std::atomic>
class handover {
 public:
  // False: it is taken or closed, and the thing is still the caller's. Seq_cst: published before
  // the caller looks for sleepers. Partners: holds_something() of one who has said that it sleeps;
  // take(), which sees what the thing is.
  [[nodiscard]] bool put(T* thing) noexcept {
    T* seen = nullptr;
    return place_.compare_exchange_strong(seen, thing, std::memory_order_seq_cst,
                                          std::memory_order_relaxed);
  }

  // Null: there is nothing.
  [[nodiscard]] T* take() noexcept {
    T* seen = place_.load(std::memory_order_relaxed);
    if (seen == nullptr || seen == closed()) return nullptr;
    // Acquire: what was written before put(). Release: who closes afterwards sees what we did
    // before, for example that we woke up. That the same thing was taken and put again meanwhile
    // does no harm.
    return place_.compare_exchange_strong(seen, nullptr, std::memory_order_acq_rel,
                                          std::memory_order_relaxed)
               ? seen
               : nullptr;
  }

  [[nodiscard]] bool holds_something() const noexcept {
    const T* const seen = place_.load(std::memory_order_seq_cst);
    return seen != nullptr && seen != closed();
  }
  // A hint.
  [[nodiscard]] bool may_hold_something() const noexcept {
    const T* const seen = place_.load(std::memory_order_relaxed);
    return seen != nullptr && seen != closed();
  }

  // Null: there is nothing. Somebody may take it at any time.
  [[nodiscard]] T* glance() const noexcept {
    T* const seen = place_.load(std::memory_order_relaxed);
    return seen != closed() ? seen : nullptr;
  }

  // Until open() nothing comes in, and what takers did before they took is visible. False:
  // something is in already, and it stays open. One at a time.
  [[nodiscard]] bool close() noexcept {
    T* seen = nullptr;
    return place_.compare_exchange_strong(seen, closed(), std::memory_order_seq_cst,
                                          std::memory_order_relaxed);
  }
  void open() noexcept { place_.store(nullptr, std::memory_order_release); }

 private:
  // No thing lies there: it is the address of the last byte.
  static T* closed() noexcept { return reinterpret_cast<T*>(~std::uintptr_t{0}); }

  Atomic<T*> place_{nullptr};
};

}  // namespace strata::detail
