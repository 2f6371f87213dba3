// SPDX-License-Identifier: Apache-2.0
// Which task a worker runs next: what is ready, its own deque, what others have brought, work of
// others. Each has its turn, however much there is of the rest.
#include <utility>

#include "sched/place.hpp"
#include "sched/scheduler.hpp"

namespace strata::detail {

void place::dispatch(const std::atomic<std::uint32_t>& leave, bool guest) {
  // Tokens from outside must not wait until a busy worker runs dry, so one task in so many comes
  // from there.
  constexpr int outside_every = 61;
  int until_outside = outside_every;
  // Tasks of our own deque have their turn when nothing is ready. Where there is always something
  // the oldest has it after so many rounds of what is ready: each of those that begin so may do
  // nothing but wait for the next, and takes a stack.
  constexpr std::size_t rounds_before_oldest = 8;
  bool deque_had_a_turn = false;
  std::size_t ran_before_oldest = 0;
  // Acquire: a root task's results are visible to the thread that leaves because of it.
  while (leave.load(std::memory_order_acquire) == root_task::running) {
    look_around_for(leave);
    if (has_batches()) [[unlikely]]
      take_batches(*this);
    if (distributes) [[unlikely]]
      owner->take_waived(*this);
    task* t = has_bound() ? next_bound() : nullptr;
    if (t == nullptr) t = ready.pop();
    // In the room of the one that has left: others come back all the time.
    if (has_set_aside()) [[unlikely]]
      queue_set_aside();
    if (t == nullptr) {
      deque_had_a_turn = true;
      t = pop();
      share_if_asked();
    }
    if (t == nullptr) {
      t = owner->find_work(*this, leave, guest);
      if (t == nullptr) continue;
    }
    t->type->run(*t, *this);
    if (looks_for_messages() || owner->injected_.has_ready()) [[unlikely]]
      look_at_what_came();
    until_outside -= static_cast<int>(1 + switches_max - switches_left_);
    if (until_outside <= 0) [[unlikely]] {
      until_outside = outside_every;
      // Only once: a thief may have taken the fork.
      if (spare_.end_promise()) continue;
      if (task* outside = owner->take_injected()) outside->type->run(*outside, *this);
      if (owner->out_of_stacks.load(std::memory_order_relaxed) != 0) give_up_spare();
      if (std::exchange(deque_had_a_turn, false)) {
        ran_before_oldest = 0;
      } else if ((ran_before_oldest += std::size_t{outside_every}) >=
                 rounds_before_oldest * (ready.size() + bound_.size())) {
        ran_before_oldest = 0;
        begin_oldest();
      }
    }
  }
}

// What others made ready takes turns with what is ready here. Those who go on with each other's
// stacks come back to where the last task was begun from here, which may be long ago: if it was
// begun by this function, others have their turn again.
[[gnu::noinline]] void place::look_at_what_came() {
  unsigned left;
  do {
    if (looks_for_messages()) [[unlikely]] {
      if (const scheduler::visit n(*owner); n) n->look();
    }
    task* const woken = owner->injected_.has_ready() ? owner->injected_.take_ready() : nullptr;
    if (woken == nullptr) return;
    left = switches_left_;
    woken->type->run(*woken, *this);
  } while (switches_left_ != left);
}

// Nothing of our own may wait for ever behind stacks that only yield to each other. Only behind
// those: whoever begins the oldest out of its turn leaves thieves crumbs to steal. And what needs a
// stack only where one is to be had without waiting for it, because whoever is in its turn may need
// it to end.
void place::begin_oldest() {
  if (!deque.maybe_work() && overflow.empty()) {
    refused_to_oldest_ = 0;
    return;
  }
  if (!deque.maybe_work()) {
    if (task* const t = pop_overflow()) push(t);
  }
  // Where thieves have not asked, the oldest is not shared yet.
  if (!deque.has_shared()) (void)deque.share();
  task* t = oldest_without_stack();
  if (t == nullptr) t = has_stack_for_oldest() ? deque.take_oldest() : newest_without_stack();
  if (t == nullptr) return;  // a thief was faster, or there is no stack
  t = unmarked(t);
  t->type->run(*t, *this);
}

}  // namespace strata::detail
