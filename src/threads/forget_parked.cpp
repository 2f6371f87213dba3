// SPDX-License-Identifier: Apache-2.0
// Who waits at addresses, and never goes on: what a fork, or a runtime that ends, leaves behind.
#include <mutex>
#include <utility>

#include "sched/outside_section.hpp"
#include "sched/scheduler.hpp"
#include "sched/suspended.hpp"
#include "threads/after_fork.hpp"
#include "threads/thread_block.hpp"
#include "threads/waiter_queue.hpp"

namespace strata::detail {

void forget_parked() noexcept {
  runtimes_given_up.store(0, std::memory_order_relaxed);
  for (waiter_queue& q : waiter_queues) {
    // Only those that need it: pages that are not written to stay shared with the parent.
    if (q.first() == nullptr && !q.lock.is_held()) continue;
    q.clear();
    q.lock.unlock();
  }
}

// Out of all queues. Those that have more to be forgotten are returned, linked by `next`: nobody
// else continues them any more.
//
// Of others' waiters nothing is touched but their places in the queues. Each lock is taken, also
// of a queue where nobody is: who moves somebody there has it before us, or sees that we are here.
static waiter* take_out_all_of(scheduler& s) noexcept {
  waiter* with_more = nullptr;
  const outside_section here;
  const uninterrupted guard;  // who ends it may be a thread of another runtime
  s.waiters_are_given_up.store(true, std::memory_order_relaxed);
  runtimes_given_up.fetch_add(1, std::memory_order_relaxed);
  for (waiter_queue& q : waiter_queues) {
    const std::lock_guard lock(q.lock);
    for (waiter* w = q.first(); w != nullptr;) {
      waiter* const next = w->next;
      // Not who waits for a call that is in progress: it goes on.
      if (w->who != nullptr && w->home == &s && !w->how->lasts) {
        q.remove(*w);
        // Who goes on at a deadline, or is on its way by an interruption, sees to the rest itself.
        if (w->how->deadline_ns == parking::never) {
          forget_wait(*w);
          if (w->how->forgotten != nullptr && w->decide(unparked::refused))
            w->next = std::exchange(with_more, w);
        }
      }
      w = next;
    }
  }
  runtimes_given_up.fetch_sub(1, std::memory_order_relaxed);
  s.waiters_are_given_up.store(false, std::memory_order_relaxed);
  return with_more;
}

void forget_parked_of(scheduler& s) noexcept {
  for (waiter* w = take_out_all_of(s); w != nullptr;) {
    waiter* const next = w->next;
    w->how->forgotten(w->how->argument);
    w = next;
  }
}

}  // namespace strata::detail
