// SPDX-License-Identifier: Apache-2.0
// For sections of a few instructions that never block: spins, and gives the core away when the
// holder seems to have lost its own.
#pragma once
#include <sched.h>

#include <atomic>

#include "os/clock.hpp"

namespace strata::detail {

class spin_lock {
 public:
  void lock() noexcept {
    // Acquire: after the holder before us. Partner: unlock().
    while (held_.exchange(true, std::memory_order_acquire)) {
      for (unsigned i = 0; held_.load(std::memory_order_relaxed); ++i) {
        if (i < 200) {
          os::spin_pause();
        } else {
          sched_yield();
        }
      }
    }
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }
  [[nodiscard]] bool is_held() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace strata::detail
