// SPDX-License-Identifier: Apache-2.0
// The stacks of one runtime: one large mapping, cut into equal pieces with a guard page below each.
// Memory is used where a stack was touched, nowhere else.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "context/stack.hpp"
#include "os/pages.hpp"

namespace strata::detail {

class stack_pool {
 public:
  // `entry(stack)` is what a new stack runs; it never returns.
  stack_pool(std::size_t stack_bytes, void (*entry)(void*));
  ~stack_pool();
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;

  // A stack that nobody uses. Throws strata::error when address space or mappings are exhausted.
  stack* take();
  void give(stack* s) noexcept;

  // The stack whose guard page holds `address`, null when none does. Safe in a signal handler.
  [[nodiscard]] const stack* guarding(const void* address) const noexcept;
  [[nodiscard]] std::size_t stack_bytes() const noexcept { return stack_bytes_; }
  [[nodiscard]] std::size_t taken_max() const noexcept {
    return cut_.load(std::memory_order_relaxed);
  }

 private:
  stack* cut();
  [[nodiscard]] stack* header(std::size_t i) const noexcept;

  const std::size_t guard_bytes_;
  const std::size_t stack_bytes_;  // usable bytes and header, without the guard
  const std::size_t stride_bytes_;
  void (*const entry_)(void*);
  os::page_range range_;
  std::mutex mutex_;
  stack* free_ = nullptr;
  std::atomic<std::size_t> cut_{
      0};  // pieces in use or free; the rest of the mapping was never touched
};

}  // namespace strata::detail
