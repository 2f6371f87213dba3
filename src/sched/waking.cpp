// SPDX-License-Identifier: Apache-2.0
// Who is woken for what has appeared: nobody as long as a worker searches that will find it.
#include "sched/foreign_waker.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/fences.hpp"

namespace strata::detail {

void scheduler::ready_appeared(place& p) noexcept {
  if (rule != policy::steal) [[unlikely]]
    return want_caretaker(p);  // whoever is meant has been woken
  // The push before, then the look for sleepers. Partner: the heavy fence in sleep().
  asymmetric_fences::light();
  if (idle_.anyone_parked()) [[unlikely]]
    wake_for_ready(p);
}

void scheduler::wake_for_ready(const place& p) noexcept {
  // And then for one that searches. Partner: pass_on().
  asymmetric_fences::full();
  if (searchers_.load(std::memory_order_seq_cst) == 0) idle_.wake_one(p.id + 1);
}

void scheduler::make_ready(unsigned i, const stack_list& some) noexcept {
  const uninterrupted guard;
  place& here = this_place();
  place& there = *places_[i];
  if (here.owner == this && (rule != policy::steal || &here == &there)) {
    here.put_stacks(some.first);
    return ready_appeared(here);
  }
  const foreign_waker unless_ours(*this);
  // Release: who takes them sees them. Seq_cst: published before we look whether somebody sleeps.
  // Partners: place::take_batches(), work_is_visible().
  some.last->next_free = there.batches.load(std::memory_order_relaxed);
  while (!there.batches.compare_exchange_weak(
      some.last->next_free, some.first, std::memory_order_seq_cst, std::memory_order_relaxed)) {
  }
  if (here.owner == this) here.events.read_modify_writes.add();
  if (!idle_.anyone_parked() || idle_.wake(i)) return;
  if (rule != policy::steal) return want_caretaker(there);
  // It runs something, perhaps for long, and whoever sleeps may take it as well. Partner:
  // pass_on().
  if (!idle_.is_coming(i) && searchers_.load(std::memory_order_seq_cst) == 0) idle_.wake_one(i + 1);
}

// The searcher will come by, or who is on its way. tend() was a full fence. Partner: pass_on().
bool scheduler::has_to_wake(const place& p) const noexcept {
  return searchers_.load(std::memory_order_seq_cst) == 0 && !idle_.is_coming(p.woke);
}

void scheduler::wake_for(place& p) noexcept {
  if (const int i = idle_.wake_one(p.id + 1); i >= 0) p.woke = static_cast<unsigned>(i);
}

void scheduler::work_appeared(place& p) noexcept {
  if (idle_.anyone_parked() && has_to_wake(p)) wake_for(p);
  // Others sleep on. We remember them ourselves: a thief's request may come just too late for a
  // push that the thief does not see yet either.
  if (idle_.anyone_parked()) p.deque.remind();
  if (const visit n(*this); n && n->hungry->load(std::memory_order_seq_cst)) n->feed(p);
}

void scheduler::look_for_sleepers(place& p) noexcept {
  if (!idle_.anyone_parked()) return p.deque.forget_reminder();
  if (!has_to_wake(p) || !p.deque.share()) return;
  p.events.shares.add();
  wake_for(p);
}

}  // namespace strata::detail
