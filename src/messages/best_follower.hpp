// SPDX-License-Identifier: Apache-2.0
// What a node knows of a best of another one (strata/shared_best.hpp), and who tells of changes:
// one at a time for each whom it tells, whatever changes how often.
#pragma once
#include <memory>
#include <mutex>
#include <utility>

#include "strata/detail/worker.hpp"
#include "strata/shared_best.hpp"
#include "sync/spin_lock.hpp"

namespace strata::detail {

// One that tells somebody what is known at the time, so often as something has changed.
class best_teller {
 public:
  // True: the caller is to begin telling, and goes on until has_told() or give_up().
  [[nodiscard]] bool begins() noexcept {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    return !(has_changed_ = std::exchange(is_telling_, true));
  }
  // True: everything.
  [[nodiscard]] bool has_told() noexcept {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    if (std::exchange(has_changed_, false)) return false;
    is_telling_ = false;
    return true;
  }
  // The next change begins anew.
  void give_up() noexcept {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    is_telling_ = has_changed_ = false;
  }

 private:
  spin_lock lock_;  // fibers must not wait
  bool is_telling_ = false;
  bool has_changed_ = false;  // meanwhile
};

struct best_follower {
  explicit best_follower(best_bits first) : cell(first), reports(std::make_shared<best_teller>()) {}
  best_cell cell;
  const std::shared_ptr<best_teller> reports;  // to the best's own node
};

}  // namespace strata::detail
