// SPDX-License-Identifier: Apache-2.0
// How ready tasks are distributed over the workers of a node, beside the deques of forks and
// tokens.
//
//   steal    a worker keeps what it has made ready; an idle one takes half of it
//   rotator  Lesser Bear's LB2 (docs/architecture.md#sources): a worker keeps its share, as
//            many as everybody has on average, and waives the rest to its successor; nobody takes
//            anything from anybody that moves
//   locked   Lesser Bear's LB1: it waives the rest too, and whoever has room takes as many as
//            fit from anybody's waived tasks, under a lock
//
// Under the latter two, who has more than its share and sees somebody idle waives what is too much
// between two tasks as well: the share has shrunk. And who stands still, as in a system call, is
// rescued: see caretaker.cpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "strata/detail/ready_queue.hpp"
#include "strata/detail/task.hpp"
#include "sync/spsc_queue.hpp"

namespace strata::detail {

enum class policy : std::uint8_t { steal, rotator, locked };

// Of an option that has been checked.
inline policy policy_of(std::string_view name) noexcept {
  return name == "rotator" ? policy::rotator : name == "locked" ? policy::locked : policy::steal;
}

// Everybody's share of so many runnable tasks: dynamic, and the same for all.
constexpr std::size_t share_of(std::size_t runnable, std::size_t workers) noexcept {
  const std::size_t share = (runnable + workers - 1) / workers;
  return share > 1 ? share : 1;
}

// Tasks become ready together: ran[i] of them ran on worker i before, where ready[i] wait already.
// How many of each of these groups worker `here` keeps; it waives the others. Shares come out
// equal, and no task changes its worker for another reason.
std::vector<std::size_t> keeps_of(const std::vector<std::size_t>& ran,
                                  const std::vector<std::size_t>& ready, std::size_t here);

// What a worker has waived. One of the two is used, according to the policy.
struct waived {
  spsc_queue<task> to_successor;  // rotator
  std::mutex lock;                // locked
  ready_queue for_anybody;        // used with the lock, but for its size
  [[nodiscard]] std::size_t size() const noexcept {
    return to_successor.size() + for_anybody.size();
  }
};

}  // namespace strata::detail
