// SPDX-License-Identifier: Apache-2.0
// The best cell seen by any worker: highest score, then first in row-major order, with the number
// of cells that tie.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace align {

struct cell {
  std::int64_t row = -1;  ///< 0-based; -1: none
  std::int64_t column = -1;

  friend bool operator==(const cell&, const cell&) = default;
  friend auto operator<=>(const cell&, const cell&) = default;
};

class best_cell {
 public:
  explicit best_cell(std::int32_t floor) : score_(floor) {}

  /// May a tile with this maximum change the result? Wait-free; a stale answer is only ever "yes"
  /// too often.
  [[nodiscard]] bool interesting(std::int32_t score) const {
    return score >= score_.load(std::memory_order_relaxed);
  }

  /// Tells of `count` cells of this score, the first of them `first`. May be called by any worker.
  void add(std::int32_t score, cell first, std::int64_t count) {
    if (count == 0) return;
    const std::lock_guard lock(mutex_);
    const std::int32_t now = score_.load(std::memory_order_relaxed);
    if (score < now) return;
    if (score > now || count_ == 0) {
      first_ = first;
      count_ = count;
      score_.store(score, std::memory_order_relaxed);
      return;
    }
    if (first < first_) first_ = first;
    count_ += count;
  }

  // Read when the sweep has ended.
  [[nodiscard]] std::int32_t score() const { return score_.load(std::memory_order_relaxed); }
  [[nodiscard]] cell first() const { return first_; }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  std::atomic<std::int32_t> score_;
  std::mutex mutex_;
  cell first_;
  std::int64_t count_ = 0;
};

}  // namespace align
