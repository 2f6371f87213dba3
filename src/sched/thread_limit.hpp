// SPDX-License-Identifier: Apache-2.0
// Whether there will be a stack for one more thread. A thread takes its stack when it begins, where
// a refusal could not be told to anybody; so those that are alive are counted, begun or not. Each
// worker counts for itself, and looks at all counts the more often the less room there is: together
// they cannot use more than half of what was left at the last look. Threads from outside look each
// time, and leave the workers what those may use until their next look.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "context/stack_pool.hpp"
#include "sched/place.hpp"

namespace strata::detail {

class thread_limit {
 public:
  // Both exist as long as this.
  thread_limit(const std::vector<std::unique_ptr<place>>& places, const stack_pool& stacks) noexcept
      : places_(places), stacks_(stacks) {}

  // Before a thread with a stack of the usual size is made by a task of p: it is counted. Throws
  // std::system_error (resource_unavailable_try_again) when there are as many threads as stacks.
  void count_one(place& p) {
    if (!room_is_known(p)) [[unlikely]]
      look(p);
  }
  // The same for those who can do without: false, and it is not counted.
  [[nodiscard]] bool try_count_one(place& p) noexcept { return room_is_known(p) || has_room(p); }
  // By a thread from outside; it ends on one of our workers like the others, unless it is not made
  // after all.
  [[nodiscard]] bool try_count_from_outside() noexcept;
  void discount_from_outside() noexcept;

 private:
  // Counts the thread; false: look.
  static bool room_is_known(place& p) noexcept {
    p.threads_made.add();
    const unsigned left = p.until_room_is_checked.load(std::memory_order_relaxed) - 1;
    p.until_room_is_checked.store(left, std::memory_order_relaxed);
    return left != 0;
  }
  void look(place& p);
  [[noreturn]] void refuse() const;
  [[nodiscard]] bool has_room(place& p) noexcept;
  [[nodiscard]] std::uint64_t count_alive() const noexcept;
  [[nodiscard]] std::size_t limit() const noexcept;

  const std::vector<std::unique_ptr<place>>& places_;
  const stack_pool& stacks_;
  std::atomic<std::uint64_t> made_outside_{0};  // threads
};

}  // namespace strata::detail
