// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/per_worker_table.hpp"

#include <algorithm>

namespace strata::detail {

constinit const per_worker_table::rows per_worker_table::none{};

void per_worker_table::store(unsigned number, void* value) {
  const std::lock_guard lock(mutex_);
  const rows* now = now_.load(std::memory_order_relaxed);
  if (number >= now->count) {
    constexpr std::size_t least = 8;
    auto larger = std::make_unique<rows>();
    larger->count = std::max({least, 2 * now->count, std::size_t{number} + 1});
    larger->values = std::make_unique<std::atomic<void*>[]>(larger->count);
    for (std::size_t i = 0; i < now->count; ++i)
      larger->values[i].store(now->values[i].load(std::memory_order_relaxed),
                              std::memory_order_relaxed);
    now = larger.get();
    made_.push_back(std::move(larger));
    // Release: the pointers in it. Partner: find().
    now_.store(now, std::memory_order_release);
  }
  now->values[number].store(value, std::memory_order_relaxed);
}

}  // namespace strata::detail
