// SPDX-License-Identifier: Apache-2.0
// Where a worker's time goes: every tick since the runtime started belongs to exactly one bucket.
// Time is read when a worker changes what it does (runs out of work, steals, parks), never per
// task.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/clock.hpp"
#include "strata/stats.hpp"

namespace strata::detail {

class accounts {
 public:
  // Time counts from `now` on. Before the worker runs.
  void start(std::uint64_t now) noexcept { since_.store(now, std::memory_order_relaxed); }

  // Only the thread that runs the worker calls this. Ends the current bucket and begins another.
  void enter(bucket next) noexcept { enter(next, os::ticks()); }
  void enter(bucket next, std::uint64_t now) noexcept {
    auto& total = ticks_[static_cast<std::size_t>(current_.load(std::memory_order_relaxed))];
    const std::uint64_t since = since_.load(std::memory_order_relaxed);
    // Counters of two cores can differ by a few ticks.
    const std::uint64_t spent = now > since ? now - since : 0;
    total.store(total.load(std::memory_order_relaxed) + spent, std::memory_order_relaxed);
    since_.store(since + spent, std::memory_order_relaxed);
    current_.store(next, std::memory_order_relaxed);
  }

  // The current bucket turns out to be another one: moves what was spent in it since it was
  // entered.
  void rename(bucket b) noexcept { current_.store(b, std::memory_order_relaxed); }

  // Ticks in each bucket until `now`. Any thread may ask; while the worker runs the answer is
  // approximate.
  [[nodiscard]] std::array<std::uint64_t, bucket_count> read(std::uint64_t now) const noexcept {
    std::array<std::uint64_t, bucket_count> all{};
    for (std::size_t b = 0; b < bucket_count; ++b)
      all[b] = ticks_[b].load(std::memory_order_relaxed);
    const std::uint64_t since = since_.load(std::memory_order_relaxed);
    if (now > since)
      all[static_cast<std::size_t>(current_.load(std::memory_order_relaxed))] += now - since;
    return all;
  }

 private:
  std::array<std::atomic<std::uint64_t>, bucket_count> ticks_{};
  std::atomic<std::uint64_t> since_{0};
  std::atomic<bucket> current_{bucket::idle};
};

}  // namespace strata::detail
