// SPDX-License-Identifier: Apache-2.0
// Whether a runtime is still there, for who holds stacks of it where it does not find them itself:
// in a barrier, for example. Shared by both, so that whichever ends first may. A runtime ends when
// nobody is inside; who comes later is turned away.
#pragma once
#include <atomic>
#include <cstdint>

namespace strata::detail {

template <template <class> class Atomic = std::atomic>
class home_gate {
 public:
  // By who is none of its workers, before it makes stacks of the runtime ready: true, and the
  // runtime exists until leave(). False: it goes no further, nor do they.
  [[nodiscard]] bool try_enter() noexcept {
    // In one step with the look, so it is awaited or has seen that it comes too late. Partner:
    // close().
    if ((state_.fetch_add(one_inside, std::memory_order_acquire) & closed) == 0) return true;
    leave();
    return false;
  }
  // Release: what was done inside. Partner: is_empty().
  void leave() noexcept { state_.fetch_sub(one_inside, std::memory_order_release); }

  // By the runtime that ends; and anew where somebody of it has gone on meanwhile.
  void close() noexcept { state_.fetch_add(closed, std::memory_order_relaxed); }
  void open() noexcept { state_.fetch_sub(closed, std::memory_order_release); }
  [[nodiscard]] bool is_closed() const noexcept {
    return (state_.load(std::memory_order_relaxed) & closed) != 0;
  }
  // Closed, it stays so but for those who are just turned away.
  [[nodiscard]] bool is_empty() const noexcept {
    return (state_.load(std::memory_order_acquire) & ~closed) == 0;
  }

 private:
  static constexpr std::uint32_t closed = 1;
  static constexpr std::uint32_t one_inside = 2;

  Atomic<std::uint32_t> state_{0};
};

}  // namespace strata::detail
