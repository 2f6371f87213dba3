// SPDX-License-Identifier: Apache-2.0
// What a node knows of a best of another one (strata/shared_best.hpp), and whom it tells of
// changes: one word at a time for each, whatever changes how often.
#pragma once
#include <mutex>
#include <utility>

#include "strata/detail/worker.hpp"
#include "strata/shared_best.hpp"
#include "sync/spin_lock.hpp"

namespace strata::detail {

// Of one that is told what is known at the time, so often as something has changed.
class best_teller {
 public:
  // True: the caller is to send a word.
  [[nodiscard]] bool begins() noexcept {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    return !(has_changed_ = std::exchange(is_telling_, true));
  }
  // The word has been heard. False: another one is to be sent.
  [[nodiscard]] bool has_told() noexcept {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    if (std::exchange(has_changed_, false)) return false;
    is_telling_ = false;
    return true;
  }
  // Another one is to be sent when that has been heard.
  [[nodiscard]] bool has_more() noexcept {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    return has_changed_;
  }

 private:
  spin_lock lock_;  // fibers must not wait, nor who handles messages
  bool is_telling_ = false;
  bool has_changed_ = false;  // meanwhile
};

struct best_follower {
  best_follower(best_bits first, const best_type& t) : cell(first), type(t) {}
  best_cell cell;
  const best_type& type;
  best_teller reports;  // to the best's own node
};

}  // namespace strata::detail
