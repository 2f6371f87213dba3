// SPDX-License-Identifier: Apache-2.0
#include "sched/policy.hpp"

#include <algorithm>

#include "sched/scheduler.hpp"

namespace strata::detail {

// Everybody's share of what is runnable: dynamic, and the same for all workers. (The paper does not
// say how LB2 computes it.) From counters with one writer each, so it is only about right, which is
// enough: what does not fit goes round once more.
std::size_t scheduler::fair_share() const noexcept {
  std::size_t runnable = 0;
  for (const auto& p : places_) runnable += p->ready.size() + p->waive.size();
  return std::max<std::size_t>((runnable + places_.size() - 1) / places_.size(), 1);
}

void scheduler::waive(place& p, task* t) {
  p.events.waived.add();
  place& successor = *places_[(p.id + 1) % places_.size()];
  if (rule == policy::rotator) {
    p.waive.to_successor.push(t);
  } else {
    const std::lock_guard lock(p.waive.lock);
    p.events.queue_locks.add();
    p.waive.for_anybody.push_back(t);
    p.waive.count.store(p.waive.for_anybody.size(), std::memory_order_relaxed);
  }
  // Inserted, then looked whether the successor sleeps (L7); it announces that it will, and then
  // looks into our queue. Partner: the heavy fence in sleep().
  asymmetric_fences::light();
  if (idle_.is_parked(successor.id)) idle_.wake(successor.id);
}

void scheduler::take_waived(place& p) {
  if (rule == policy::rotator) {
    place& predecessor = *places_[(p.id + places_.size() - 1) % places_.size()];
    // As many as are there now: what is waived meanwhile may be our own, gone round.
    for (std::size_t n = predecessor.waive.to_successor.size(); n > 0; --n) {
      task* const t = predecessor.waive.to_successor.pop();
      if (t == nullptr) break;
      p.events.hops.add();
      p.put(t);
    }
    return;
  }
  const std::size_t share = fair_share();
  const std::size_t have = p.ready.size();
  if (have >= share) return;
  std::size_t room = share - have;
  const auto take_from = [&](place& from) {
    if (from.waive.count.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(from.waive.lock);
    p.events.queue_locks.add();
    auto& q = from.waive.for_anybody;
    for (; room > 0 && !q.empty(); --room) {
      p.ready.push(q.front());
      q.pop_front();
      p.events.hops.add();
    }
    from.waive.count.store(q.size(), std::memory_order_relaxed);
  };
  take_from(p);
  for (place* const other : p.victims) {
    if (room == 0) break;
    take_from(*other);
  }
}

bool scheduler::waived_for(const place& p) const noexcept {
  switch (rule) {
    case policy::steal:
      return false;
    case policy::rotator:
      return places_[(p.id + places_.size() - 1) % places_.size()]->waive.to_successor.size() > 0;
    case policy::locked:
      return std::any_of(places_.begin(), places_.end(), [](const auto& other) {
        return other->waive.count.load(std::memory_order_relaxed) > 0;
      });
  }
  return false;
}

}  // namespace strata::detail
