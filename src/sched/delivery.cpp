// SPDX-License-Identifier: Apache-2.0
// How stacks that are ready come to the worker that is to run them, in the order in which they were
// brought: pinned ones, those that others have made ready, and those that found no memory.
#include <utility>

#include "sched/foreign_waker.hpp"
#include "sched/place.hpp"
#include "sched/scheduler.hpp"

namespace strata::detail {

void place::deliver(stack& s) noexcept {
  const foreign_waker unless_ours(*owner);
  s.next_free = delivered_.load(std::memory_order_relaxed);
  // Release: the stack is off its old worker. Seq_cst: before we look whether the worker sleeps.
  // Partners: next_bound(), has_bound().
  while (!delivered_.compare_exchange_weak(s.next_free, &s, std::memory_order_seq_cst,
                                           std::memory_order_relaxed)) {
  }
  if (place& here = this_place(); here.owner == owner) here.events.read_modify_writes.add();
  owner->wake_place(static_cast<int>(id));
}

static stack* next_in_list(const stack& s) noexcept { return s.next_free; }

// Takes turns with the others. Null: it is theirs.
task* place::next_bound() {
  stack* some = nullptr;
  if (delivered_.load(std::memory_order_relaxed) != nullptr) {
    some = delivered_.exchange(nullptr, std::memory_order_acquire);
    events.read_modify_writes.add();
  }
  stack* oldest = nullptr;
  while (some != nullptr) {
    stack* const older = std::exchange(some->next_free, oldest);
    oldest = std::exchange(some, older);
  }
  oldest = bound_.push_all(oldest, next_in_list);
  // There is no memory for more: in the same order next time.
  while (oldest != nullptr) deliver(*std::exchange(oldest, oldest->next_free));
  bound_had_its_turn_ = !bound_had_its_turn_;
  return bound_had_its_turn_ || ready.empty() ? bound_.pop() : nullptr;
}

bool place::take_batches(place& taker) {
  // Acquire: what is in them. Partner: scheduler::make_ready().
  stack* const first = batches.exchange(nullptr, std::memory_order_acquire);
  taker.events.read_modify_writes.add();
  if (first == nullptr) return false;
  taker.put_stacks(first);
  if (taker.leaves_others_behind()) taker.owner->ready_appeared(taker);
  return true;
}

void place::put_stacks(stack* first) noexcept {
  if (!distributes) first = ready.push_all(first, next_in_list);
  while (first != nullptr) {
    stack* const next = first->next_free;  // it may be gone, and listed elsewhere
    put_free_stack(*first);
    first = next;
  }
}

void place::queue_set_aside() noexcept {
  while (stack* const s = set_aside_.first) {
    stack_list rest = set_aside_;
    (void)rest.take_first();  // once it is in the queue it may be gone
    if (!ready.try_push(s)) return;
    set_aside_ = rest;
  }
}

}  // namespace strata::detail
