// SPDX-License-Identifier: Apache-2.0
// Tasks that one worker has to run next, in order of arrival (EARTH's ready queue, Lesser Bear's
// Protect Queue): no other worker sees it, so it needs no synchronization. A ring of pointers,
// because one fiber can be enabled twice before it runs once.
#pragma once
#include <cstddef>
#include <memory>

#include "strata/detail/task.hpp"

namespace strata::detail {

class ready_queue {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }

  void push(task* t) {
    if (tail_ - head_ > mask_) [[unlikely]]
      grow();
    ring_[tail_++ & mask_] = t;
  }
  // To be run before all others.
  void push_front(task* t) {
    if (tail_ - head_ > mask_) [[unlikely]]
      grow();
    ring_[--head_ & mask_] = t;
  }
  // Null when empty.
  [[nodiscard]] task* pop() noexcept { return head_ == tail_ ? nullptr : ring_[head_++ & mask_]; }

 private:
  void grow() {
    const std::size_t size = tail_ - head_;
    auto bigger = std::make_unique<task*[]>((mask_ + 1) * 2);
    for (std::size_t i = 0; i < size; ++i) bigger[i] = ring_[(head_ + i) & mask_];
    ring_ = std::move(bigger);
    mask_ = mask_ * 2 + 1;
    head_ = 0;
    tail_ = size;
  }

  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  std::size_t mask_ = 63;
  std::unique_ptr<task*[]> ring_ = std::make_unique<task*[]>(64);
};

}  // namespace strata::detail
