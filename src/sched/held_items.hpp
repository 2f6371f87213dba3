// SPDX-License-Identifier: Apache-2.0
// What the mailboxes of a runtime hold: items that were dropped in and that nobody has retrieved.
// Nobody who drops one in waits, so only the program bounds that.
//
// Each worker counts in a part of its own, or mailboxes that have nothing to do with each other
// would contend for one cache line. A part keeps its bytes until they are worth telling to all:
// the most that there were is known up to part_max for each other worker.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/detail/cpu.hpp"

namespace strata::detail {

class held_items {
 public:
  static constexpr std::int64_t part_max = 16 * 1024;
  // Of threads that are no workers.
  static constexpr unsigned nobody = 0;
  static constexpr unsigned of_worker(unsigned id) noexcept { return id + 1; }
  struct amount {
    std::size_t items, bytes, most_bytes;
  };

  explicit held_items(unsigned workers) : parts_(workers + std::size_t{1}) {}

  // `who`: nobody or of_worker(). Where it is another one, also of another runtime, only speed is
  // lost.
  void come(std::size_t bytes, unsigned who) noexcept {
    part& p = parts_[who % parts_.size()];
    p.items.fetch_add(1, std::memory_order_relaxed);
    const auto more = static_cast<std::int64_t>(bytes);
    const std::int64_t here = p.bytes.fetch_add(more, std::memory_order_relaxed) + more;
    const std::int64_t now = told_bytes_.load(std::memory_order_relaxed) + here;
    std::int64_t most = p.most_bytes.load(std::memory_order_relaxed);
    while (now > most &&
           !p.most_bytes.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
    if (here >= part_max) tell(p);
  }
  void go(std::size_t items, std::size_t bytes, unsigned who) noexcept {
    part& p = parts_[who % parts_.size()];
    p.items.fetch_sub(static_cast<std::int64_t>(items), std::memory_order_relaxed);
    const auto less = static_cast<std::int64_t>(bytes);
    if (p.bytes.fetch_sub(less, std::memory_order_relaxed) - less <= -part_max) tell(p);
  }
  // Exact while nobody comes or goes.
  [[nodiscard]] amount now() const noexcept {
    std::int64_t items = 0, most = 0, bytes = told_bytes_.load(std::memory_order_relaxed);
    for (const part& p : parts_) {
      items += p.items.load(std::memory_order_relaxed);
      bytes += p.bytes.load(std::memory_order_relaxed);
      most = std::max(most, p.most_bytes.load(std::memory_order_relaxed));
    }
    const auto count = [](std::int64_t n) {
      return static_cast<std::size_t>(std::max<std::int64_t>(n, 0));
    };
    return {count(items), count(bytes), count(std::max(most, bytes))};
  }

 private:
  // Counts, of no partner. Less than 0 where more goes than comes.
  struct alignas(destructive_bytes) part {
    std::atomic<std::int64_t> items{0}, bytes{0}, most_bytes{0};
  };
  void tell(part& p) noexcept {
    told_bytes_.fetch_add(p.bytes.exchange(0, std::memory_order_relaxed),
                          std::memory_order_relaxed);
  }

  std::vector<part> parts_;
  alignas(destructive_bytes) std::atomic<std::int64_t> told_bytes_{0};
};

}  // namespace strata::detail
