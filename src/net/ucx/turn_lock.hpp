// SPDX-License-Identifier: Apache-2.0
// Who may call the worker. It is held for up to some tens of microseconds (system calls, copies of
// a socket's content), by one who polls all the time perhaps: he lets those go first who wait, or
// they might never get it.
#pragma once
#include <atomic>
#include <mutex>

#include "os/clock.hpp"

namespace strata::net::ucx {

class turn_lock {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    waiting_.fetch_add(1, std::memory_order_relaxed);
    bool mine = false;
    for (int i = 0; i < spins && !mine; ++i) {
      os::spin_pause();
      mine = mutex_.try_lock();
    }
    if (!mine) mutex_.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  void unlock() { mutex_.unlock(); }

  // For who comes again and again: a short while for the others.
  void give_way() const noexcept {
    for (int i = 0; i < spins && waiting_.load(std::memory_order_relaxed) != 0; ++i) {
      os::spin_pause();
    }
  }

 private:
  static constexpr int spins = 100;
  std::mutex mutex_;
  std::atomic<unsigned> waiting_{0};
};

}  // namespace strata::net::ucx
