// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/overflow_list.hpp"

#include <algorithm>

namespace strata::detail {

void overflow_list::push(task* t) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(t);
  count_.store(tasks_.size() - first_, std::memory_order_relaxed);
}

std::size_t overflow_list::take_newest(task** out, std::size_t n) noexcept {
  const std::lock_guard lock(mutex_);
  n = std::min(n, tasks_.size() - first_);
  std::copy(tasks_.end() - static_cast<std::ptrdiff_t>(n), tasks_.end(), out);
  tasks_.resize(tasks_.size() - n);
  forget_taken();
  return n;
}

std::size_t overflow_list::take_half(task** out, std::size_t n) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return 0;
  n = std::min(n, (tasks_.size() - first_ + 1) / 2);
  std::copy_n(tasks_.begin() + static_cast<std::ptrdiff_t>(first_), n, out);
  first_ += n;
  forget_taken();
  return n;
}

// Each is moved once at most for each that has been taken.
void overflow_list::forget_taken() noexcept {
  if (2 * first_ >= tasks_.size()) {
    tasks_.erase(tasks_.begin(), tasks_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  count_.store(tasks_.size() - first_, std::memory_order_relaxed);
}

}  // namespace strata::detail
