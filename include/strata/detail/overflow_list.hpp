// SPDX-License-Identifier: Apache-2.0
// Tasks that found their worker's deque full, oldest first. Behind a lock, so that whoever idles
// can have them while their owner is deep in something long: there may be a million.
#pragma once
#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

namespace strata::detail {

struct task;

class overflow_list {
 public:
  // ---- the owner ----
  // Throws std::bad_alloc; nothing has been pushed then.
  void push(task* t);
  // Takes the newest, of which there are at most n, to `out`, oldest first. Returns how many.
  std::size_t take_newest(task** out, std::size_t n) noexcept;

  // ---- anybody ----
  // The oldest: half of what there is, and at most n. None where somebody else is at it.
  std::size_t take_half(task** out, std::size_t n) noexcept;
  // Exact for the owner while nobody takes; else a hint.
  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  void forget_taken() noexcept;

  // Held for as long as copying some hundred pointers takes.
  std::mutex mutex_;
  std::vector<task*> tasks_;
  std::size_t first_ = 0;              // those before it have been taken
  std::atomic<std::size_t> count_{0};  // of the others; written behind the lock
};

}  // namespace strata::detail
