// SPDX-License-Identifier: Apache-2.0
// How ready tasks are distributed over the workers of a node, beside the deques of forks and
// tokens.
//
//   steal    a worker keeps what it has made ready; an idle one takes half of it
//   rotator  Lesser Bear's LB2 (L6): a worker keeps its share, as many as everybody has on average,
//   and
//            waives the rest to its successor; nobody takes anything from anybody
//   locked   Lesser Bear's LB1 (L5): it waives the rest too, and whoever has room takes as many as
//            fit from anybody's waived tasks, under a lock
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>

#include "strata/detail/task.hpp"
#include "sync/spsc_queue.hpp"

namespace strata::detail {

enum class policy : std::uint8_t { steal, rotator, locked };

// Of an option that has been checked.
inline policy policy_of(std::string_view name) noexcept {
  return name == "rotator" ? policy::rotator : name == "locked" ? policy::locked : policy::steal;
}

// What a worker has waived. One of the two is used, according to the policy.
struct waived {
  spsc_queue<task> to_successor;  // rotator
  std::mutex lock;                // locked
  std::deque<task*> for_anybody;
  std::atomic<std::size_t> count{0};  // of for_anybody; written with the lock
  [[nodiscard]] std::size_t size() const noexcept {
    return to_successor.size() + count.load(std::memory_order_relaxed);
  }
};

}  // namespace strata::detail
