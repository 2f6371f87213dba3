// SPDX-License-Identifier: Apache-2.0
// The one stack that a worker keeps at hand: its next task is likely to want it.
#pragma once
#include <atomic>
#include <utility>

#include "context/stack.hpp"

namespace strata::detail {

class spare_stack {
 public:
  // ---- by whoever runs there, or has taken the place from a sleeper ----
  // Null: there is none.
  stack* take() noexcept {
    stack* const s = stack_.load(std::memory_order_relaxed);
    if (s != nullptr) [[likely]]
      stack_.store(nullptr, std::memory_order_relaxed);
    is_promised_ = false;
    return s;
  }
  // There is none.
  void put(stack& s) noexcept { stack_.store(&s, std::memory_order_relaxed); }
  // The same, for a fork at the end of its stack, which is next: who may begin but need not leaves
  // it alone.
  void promise(stack& s) noexcept {
    put(s);
    is_promised_ = true;
  }
  // Whether that is so; not any more.
  [[nodiscard]] bool end_promise() noexcept { return std::exchange(is_promised_, false); }

  // ---- by anybody, as a hint ----
  [[nodiscard]] bool is_there() const noexcept {
    return stack_.load(std::memory_order_relaxed) != nullptr;
  }

 private:
  std::atomic<stack*> stack_{nullptr};  // relaxed: others only look whether there is one
  bool is_promised_ = false;
};

}  // namespace strata::detail
