// SPDX-License-Identifier: Apache-2.0
#include "sched/policy.hpp"

#include <algorithm>
#include <cstdint>
#include <new>

#include "sched/scheduler.hpp"
#include "sync/fence_before_look.hpp"

namespace strata::detail {
namespace {

// Neighbours among threads often work on neighbouring data, and each border between those of two
// workers is data of both. So the share is counted, and whether there is room, for some at a time,
// which go the same way: half of the share at most would be out of place, until somebody idles
// (shed()). With few threads, each by itself.
constexpr std::size_t run_max = 64;
constexpr std::size_t runs_in_a_share = 2;

// Taken and given back: a read-modify-write each.
void count_lock(place& p) noexcept {
  p.events.queue_locks.add();
  p.events.read_modify_writes.add(2);
}

}  // namespace

std::vector<std::size_t> keeps_of(const std::vector<std::size_t>& ran,
                                  const std::vector<std::size_t>& ready, std::size_t here) {
  const std::size_t workers = ran.size();
  std::size_t runnable = 0;
  for (std::size_t i = 0; i < workers; ++i) runnable += ran[i] + ready[i];
  const std::size_t share = share_of(runnable, workers);
  const auto room_of = [&](std::size_t i) { return share - std::min(share, ready[i]); };
  std::vector<std::size_t> keeps(workers);
  std::size_t room = room_of(here);
  room -= keeps[here] = std::min(room, ran[here]);
  // What others have no room for.
  for (std::size_t i = 0; i < workers; ++i) {
    if (i == here) continue;
    const std::size_t too_many = ran[i] - std::min(ran[i], room_of(i));
    room -= keeps[i] = std::min(room, too_many);
  }
  return keeps;
}

// (The paper does not say how LB2 computes it.) From counters with one writer each, so it is only
// about right, which is enough: what does not fit goes round once more.
std::size_t scheduler::fair_share() const noexcept {
  std::size_t runnable = 0;
  std::size_t moving = 0;
  // A queue that changes while it is counted may seem to hold less than nothing.
  const auto about = [](std::size_t n) { return n > SIZE_MAX / 2 ? 0 : n; };
  for (const auto& p : places_) {
    runnable += about(p->ready.size()) + about(p->waive.size());
    // Who sleeps takes what it is given, whatever it did before.
    const bool moves = !p->stands_still.load(std::memory_order_relaxed) || idle_.is_parked(p->id);
    moving += moves ? 1 : 0;
  }
  return share_of(runnable, std::max<std::size_t>(moving, 1));
}

bool place::try_put_by_policy(task* t) noexcept {
  if (run_left_ == 0 || (!run_stays_ && ready.size() < run_share_)) {
    run_share_ = owner->fair_share();
    run_stays_ = ready.size() < run_share_;
    run_left_ =
        static_cast<unsigned>(std::clamp<std::size_t>(run_share_ / runs_in_a_share, 1, run_max));
  }
  --run_left_;
  return (!run_stays_ && owner->try_waive(*this, t)) || ready.try_push(t);
}

void scheduler::make_all_ready(std::span<const listed_stacks> by_worker) noexcept {
  place& here = this_place();
  const bool shares = here.owner == this && here.distributes && share_out(here, by_worker);
  for (std::size_t i = 0; i < by_worker.size(); ++i) {
    if (!shares && !by_worker[i].free.empty())
      make_ready(static_cast<unsigned>(i), by_worker[i].free);
    stack_list pinned = by_worker[i].pinned;
    while (stack* const s = pinned.take_first()) s->pinned_to->deliver(*s);
  }
}

bool scheduler::share_out(place& here, std::span<const listed_stacks> by_worker) noexcept {
  const std::size_t workers = places_.size();
  std::vector<std::size_t> keeps;
  try {
    std::vector<std::size_t> ran(workers);
    std::vector<std::size_t> ready(workers);
    for (std::size_t i = 0; i < workers; ++i) {
      ran[i] = by_worker[i].free.count;
      ready[i] = places_[i]->ready.size();
    }
    keeps = keeps_of(ran, ready, here.id);
  } catch (const std::bad_alloc&) {
    return false;
  }
  // First what others wait for, in the order of the ring: each finds its own before those that it
  // passes on.
  for (std::size_t k = 1; k <= workers; ++k) {
    const std::size_t i = (here.id + k) % workers;
    stack* s = by_worker[i].free.first;
    for (std::size_t j = 0; j < by_worker[i].free.count; ++j) {
      stack* const next = s->next_free;  // once waived it may be in another list
      if (j >= keeps[i] && !try_waive(here, s)) here.queue(*s);
      s = next;
    }
  }
  for (std::size_t i = 0; i < workers; ++i) {
    stack* s = by_worker[i].free.first;
    for (std::size_t j = 0; j < keeps[i]; ++j) {
      stack* const next = s->next_free;
      here.queue(*s);
      s = next;
    }
  }
  ready_appeared(here);
  return true;
}

// Once the share has shrunk: only where somebody has nothing to do, for everybody else's threads
// become fewer as well.
void scheduler::shed(place& p) noexcept {
  const std::size_t share = fair_share();
  for (std::size_t have = p.ready.size(); have > share; --have) {
    task* const t = p.ready.pop();
    if (t == nullptr) return;
    if (try_waive(p, t)) continue;
    (void)p.ready.try_push_front(t);  // in the room that it had
    return;
  }
}

bool scheduler::somebody_idles(const place& p) const noexcept {
  const auto idles = [this](const place& other) {
    return other.looks_for_work.load(std::memory_order_relaxed) || idle_.is_parked(other.id);
  };
  if (rule == policy::rotator) return idles(*places_[(p.id + 1) % places_.size()]);
  return std::any_of(p.victims.begin(), p.victims.end(),
                     [&](const place* other) { return idles(*other); });
}

bool scheduler::try_waive(place& p, task* t) noexcept {
  place& successor = *places_[(p.id + 1) % places_.size()];
  if (rule == policy::rotator) {
    if (successor.stands_still.load(std::memory_order_relaxed) && !idle_.is_parked(successor.id))
      return false;
    if (!p.waive.to_successor.try_push(t)) return false;
  } else {
    const std::lock_guard lock(p.waive.lock);
    count_lock(p);
    if (!p.waive.for_anybody.try_push(t)) return false;
  }
  p.events.waived.add();
  // Whoever sleeps can take what is for anybody: the successor may run something long.
  if (rule == policy::locked) {
    fence_before_look();  // as below
    if (idle_.anyone_parked()) idle_.wake_one(p.id + 1);
    return true;
  }
  // Inserted, then looked whether the successor sleeps (L7); it announces that it will, and then
  // looks into our queue. Partner: the heavy fence in sleep(). Where somebody takes its place
  // before us, what is done there may take long.
  fence_before_look();
  if (!idle_.is_parked(successor.id) || !idle_.wake(successor.id)) want_caretaker(p);
  return true;
}

void scheduler::take_waived(place& p) {
  if (p.stands_still.load(std::memory_order_relaxed)) [[unlikely]]
    p.stands_still.store(false, std::memory_order_relaxed);
  if (p.ready.size() > 1 && somebody_idles(p)) [[unlikely]]
    shed(p);
  if (rule == policy::rotator) {
    place& predecessor = predecessor_of(p);
    bool took = false;
    // As many as are there now: what is waived meanwhile may be our own, gone round.
    for (std::size_t n = predecessor.waive.to_successor.size(); n > 0; --n) {
      if (!p.ready.try_reserve(1)) break;
      // Who rescues us takes from there, too.
      task* const t = p.ready.undisturbed([&] { return predecessor.waive.to_successor.pop(); });
      if (t == nullptr) break;
      p.events.hops.add();
      (void)p.try_put(t);  // there is room
      took = true;
    }
    if (took) left_behind_the_first(p);
    return;
  }
  const std::size_t share = fair_share();
  const std::size_t have = p.ready.size();
  if (have >= share) return;
  std::size_t room = share - have;
  const auto take_from = [&](place& from) {
    if (from.waive.for_anybody.empty()) return;
    const std::lock_guard lock(from.waive.lock);
    count_lock(p);
    for (; room > 0 && p.ready.try_reserve(1); --room) {
      task* const t = from.waive.for_anybody.pop();
      if (t == nullptr) break;
      (void)p.ready.try_push(t);  // there is room
      p.events.hops.add();
    }
  };
  take_from(p);
  for (place* const other : p.victims) {
    if (room == 0) break;
    take_from(*other);
  }
  if (room != share - have) left_behind_the_first(p);
}

bool scheduler::waived_for(const place& p) const noexcept {
  switch (rule) {
    case policy::steal:
      return false;
    case policy::rotator:
      return predecessor_of(p).waive.to_successor.size() > 0;
    case policy::locked:
      return std::any_of(places_.begin(), places_.end(),
                         [](const auto& other) { return !other->waive.for_anybody.empty(); });
  }
  return false;
}

}  // namespace strata::detail
