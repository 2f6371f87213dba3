// SPDX-License-Identifier: Apache-2.0
// Neighbours that this node cannot reach any more, as long as it is not known why. When one process
// is killed others end because of that, some of them at once, and whose connection a node finds
// closed first is chance. The launcher tells all who was the first. So a node waits for that word,
// and believes what it sees itself only when none has come in time.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "net/wire.hpp"

namespace strata::cluster {

class suspicions {
 public:
  struct suspect {
    net::node_id node;
    std::string why;
  };

  explicit suspicions(std::int64_t patience_ns) : patience_ns_(patience_ns) {}

  void add(suspect one, std::int64_t now_ns) {
    if (all_.empty()) due_ns_.store(now_ns + patience_ns_, std::memory_order_relaxed);
    all_.push_back(std::move(one));
  }
  // When the first has waited long enough, and the others with it; INT64_MAX: there is none. Any
  // thread.
  [[nodiscard]] std::int64_t due_ns() const noexcept {
    return due_ns_.load(std::memory_order_relaxed);
  }
  // All, in the order in which they came.
  [[nodiscard]] std::vector<suspect> take() {
    due_ns_.store(INT64_MAX, std::memory_order_relaxed);
    return std::exchange(all_, {});
  }

 private:
  const std::int64_t patience_ns_;
  std::atomic<std::int64_t> due_ns_{INT64_MAX};
  std::vector<suspect> all_{};
};

}  // namespace strata::cluster
