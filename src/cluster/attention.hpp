// SPDX-License-Identifier: Apache-2.0
// Who looks for messages while workers are busy, with adaptive reception: a receiver thread that
// sleeps until some come, or, while they come often, the workers between two tasks.
//
// A look costs a worker a fraction of a microsecond and answers within a task; waking the receiver
// takes several, and it wants a core that a worker has. But a worker that is deep in one long task
// looks at nothing. So the receivers hand over to the workers when messages come in close
// succession, look themselves where nobody has for `watch_ns`, and take over again when the
// messages become few, or when a worker did not look in time; after that they keep it for longer
// each time, unless the workers had looked in time for long: then it was the odd long task, or
// another program on the core.
//
// Everything here is a guess about what is cheaper: whatever it says, no message waits for longer
// than about watch_ns.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace strata::cluster {

class attention {
 public:
  static constexpr std::int64_t watch_ns = 100'000;
  // Two messages within this time are a conversation; one that is silent for as long as `over_ns`
  // has ended.
  static constexpr std::int64_t close_ns = 5'000'000;
  static constexpr std::int64_t over_ns = 500'000;
  static constexpr std::int64_t keep_min_ns = 1'000'000, keep_max_ns = 1'000'000'000;
  // Workers that have looked in time for so many times as long as the receivers would keep it.
  static constexpr std::int64_t long_ago = 10;

  // ---- receivers ----

  // Messages have been handed over while workers were busy.
  void heard_by_receiver(std::int64_t now_ns) noexcept {
    const bool again = now_ns - heard_at_.exchange(now_ns, std::memory_order_relaxed) < close_ns;
    if (again && now_ns >= kept_until_.load(std::memory_order_relaxed)) {
      looked_at_.store(now_ns, std::memory_order_relaxed);
      given_at_.store(now_ns, std::memory_order_relaxed);
      workers_look_.store(true, std::memory_order_relaxed);
    }
  }
  // False: the receivers look again, from now on.
  bool workers_go_on(std::int64_t now_ns) noexcept {
    if (!workers_look_.load(std::memory_order_relaxed)) return false;
    if (now_ns - looked_at_.load(std::memory_order_relaxed) > watch_ns) {
      std::int64_t keep = keep_ns_.load(std::memory_order_relaxed);
      if (now_ns - given_at_.load(std::memory_order_relaxed) > long_ago * keep) keep = keep_min_ns;
      kept_until_.store(now_ns + keep, std::memory_order_relaxed);
      keep_ns_.store(std::min(2 * keep, keep_max_ns), std::memory_order_relaxed);
    } else if (now_ns - heard_at_.load(std::memory_order_relaxed) > over_ns) {
      keep_ns_.store(keep_min_ns, std::memory_order_relaxed);
    } else {
      return true;
    }
    receivers_look();
    return false;
  }
  void receivers_look() noexcept { workers_look_.store(false, std::memory_order_relaxed); }

  // ---- workers ----

  [[nodiscard]] const std::atomic<bool>& workers_look() const noexcept { return workers_look_; }
  void looked(std::int64_t now_ns, bool found) noexcept {
    looked_at_.store(now_ns, std::memory_order_relaxed);
    if (found) heard_at_.store(now_ns, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> workers_look_{false};
  std::atomic<std::int64_t> looked_at_{0}, heard_at_{-close_ns}, given_at_{0};
  std::atomic<std::int64_t> kept_until_{0}, keep_ns_{keep_min_ns};
};

}  // namespace strata::cluster
