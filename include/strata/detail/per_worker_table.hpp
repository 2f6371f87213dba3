// SPDX-License-Identifier: Apache-2.0
// Which value of a per_worker is whose: pointers, by worker number (held_worker::number()). Each is
// stored once, by whoever has its number.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace strata::detail {

class per_worker_table {
 public:
  per_worker_table() noexcept = default;
  per_worker_table(const per_worker_table&) = delete;
  per_worker_table& operator=(const per_worker_table&) = delete;

  // By whoever has the number. Null: nothing has been stored for it.
  [[nodiscard]] void* find(unsigned number) const noexcept {
    // Acquire: what the rows hold. Partner: store().
    const rows* const now = now_.load(std::memory_order_acquire);
    // Relaxed: who has had the number before has given it back under a lock.
    return number < now->count ? now->values[number].load(std::memory_order_relaxed) : nullptr;
  }
  // By whoever has the number, where there is nothing. Throws std::bad_alloc, and has stored
  // nothing then.
  void store(unsigned number, void* value);
  // The least number from there on for which something has been stored, while nobody else stores.
  [[nodiscard]] std::size_t next(std::size_t number) const noexcept {
    const rows* const now = now_.load(std::memory_order_acquire);
    for (; number < now->count; ++number)
      if (now->values[number].load(std::memory_order_relaxed) != nullptr) return number;
    return none_left;
  }
  static constexpr std::size_t none_left = SIZE_MAX;

 private:
  struct rows {
    std::size_t count = 0;
    std::unique_ptr<std::atomic<void*>[]> values;
  };
  static const rows none;

  std::atomic<const rows*> now_{&none};
  std::mutex mutex_;  // of whoever stores
  // The last is the current one. Who looks into one from before finds its own value there all the
  // same, if it has one.
  std::vector<std::unique_ptr<const rows>> made_;
};

}  // namespace strata::detail
