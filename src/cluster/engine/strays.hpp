// SPDX-License-Identifier: Apache-2.0
// Messages for nodes that left just when they were said. Who says one may not deal with it, as it
// may hold anything; whoever handles messages does.
#pragma once
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "cluster/words/message_copy.hpp"
#include "net/wire.hpp"

namespace strata::cluster {

class strays {
 public:
  struct stray {
    net::node_id to;
    message_copy what;
  };

  void add(stray one) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(one));
    is_any_.store(true, std::memory_order_release);
  }
  // Without the lock. Partner: add().
  [[nodiscard]] bool is_any() const noexcept { return is_any_.load(std::memory_order_acquire); }
  [[nodiscard]] std::vector<stray> take() {
    const std::lock_guard lock(mutex_);
    is_any_.store(false, std::memory_order_relaxed);
    return std::exchange(all_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<stray> all_;
  std::atomic<bool> is_any_{false};
};

}  // namespace strata::cluster
