// SPDX-License-Identifier: Apache-2.0
// Who waits at addresses, and never goes on: what a fork, or a runtime that ends, leaves behind.
#include <mutex>

#include "sched/scheduler.hpp"
#include "sched/suspended.hpp"
#include "threads/after_fork.hpp"
#include "threads/waiter_queue.hpp"

namespace strata::detail {

void forget_parked() noexcept {
  waiters_move.unlock();
  for (waiter_queue& q : waiter_queues) {
    // Only those that need it: pages that are not written to stay shared with the parent.
    if (!q.has_any() && !q.lock.is_held()) continue;
    q.clear();
    q.lock.unlock();
  }
}

// Of others' waiters nothing is touched but their places in the queues.
void forget_parked_of(const scheduler& s) noexcept {
  const uninterrupted guard;  // who ends it may be a thread of another runtime
  const std::lock_guard nobody_moves(waiters_move);
  for (waiter_queue& q : waiter_queues) {
    if (!q.has_any()) continue;
    const std::lock_guard lock(q.lock);
    for (waiter* w = q.first(); w != nullptr;) {
      waiter* const next = w->next;
      if (w->who != nullptr && w->who->home == &s) q.remove(*w);
      w = next;
    }
  }
}

}  // namespace strata::detail
