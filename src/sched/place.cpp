// SPDX-License-Identifier: Apache-2.0
#include "sched/place.hpp"

#include <cstdio>
#include <cstdlib>

#include "sched/scheduler.hpp"
#include "strata/error.hpp"

#if defined(STRATA_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace strata::detail {
namespace {

void run_resumed(task& t, worker& w) {
  w.events.resumptions.add();
  static_cast<place&>(w).continue_stack(static_cast<stack&>(t));
}
const char* resumed_name() { return "suspended task"; }
constexpr task_type resumed_stack{&run_resumed, nullptr, nullptr, &resumed_name};

void recycle(place& p, void* ended) {
  auto* s = static_cast<stack*>(ended);
  s->kind = nullptr;
  p.give_stack(s);
}

}  // namespace

// What every pooled stack runs for ever: the body of one task after another.
void stack_main(void* argument) noexcept {
#if defined(STRATA_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  auto* s = static_cast<stack*>(argument);
  this_place().arrive();
  for (;;) {
    s->kind->body(*s->running);
    this_place().leave_stack(&recycle, s);
  }
}

place::place(frame_depot& depot, scheduler& s, unsigned number) : worker(depot) {
  id = number;
  owner = &s;
  failed = &s.failed;
  profiling = s.settings.profile;
  node = static_cast<std::uint16_t>(s.settings.node);
}

void place::dispatch(const std::atomic<std::uint32_t>& leave, bool guest) {
  // Work from outside must not wait until a busy worker runs dry, so one task in so many comes from
  // there.
  constexpr int outside_every = 61;
  int until_outside = outside_every;
  // Acquire: a root task's results are visible to the thread that leaves because of it.
  while (leave.load(std::memory_order_acquire) == root_task::running) {
    look_around_for(leave);
    task* t = ready.pop();
    if (t == nullptr) t = pop();
    if (t == nullptr) {
      t = owner->find_work(*this, leave, guest);
      if (t == nullptr) continue;
    }
    t->type->run(*t, *this);
    if (polls) [[unlikely]] {
      if (const scheduler::visit n(*owner); n) n->poll();
    }
    until_outside -= static_cast<int>(1 + switches_max - switches_left_);
    if (until_outside <= 0) [[unlikely]] {
      until_outside = outside_every;
      if (task* outside = owner->take_injected()) outside->type->run(*outside, *this);
      // Nor may the oldest task of our own wait for ever behind stacks that only yield to each
      // other.
      task* oldest = nullptr;
      if (!ready.empty() && deque.steal(oldest) == steal_outcome::taken)
        unmarked(oldest)->type->run(*unmarked(oldest), *this);
    }
  }
}

void place::continue_stack(stack& s) {
  current = &s;
  stack_limit = profiling ? UINTPTR_MAX : s.limit;
  switch_context(native, s);
  current = nullptr;
  stack_limit = UINTPTR_MAX;
  arrive();
}

// Null when the dispatcher should have a look first, or nothing that owns a stack is next.
stack* place::next_stack() noexcept {
  if (switches_left_ == 0 || polls || profiling) return nullptr;
  if (leave_->load(std::memory_order_relaxed) != root_task::running) return nullptr;
  --switches_left_;
  task* const t = ready.pop();
  if (t == nullptr) return nullptr;
  if (t->type->run == &run_resumed) {
    events.resumptions.add();
    return static_cast<stack*>(t);
  }
  if (t->type->run == &run_on_stack) return prepare_stack(*t);
  ready.push_front(t);
  return nullptr;
}

void place::leave_stack(void (*action)(place&, void*), void* argument) noexcept {
  stack& from = *current;
  action_ = action;
  argument_ = argument;
  if (stack* const next = next_stack()) {
    current = next;
    stack_limit = next->limit;
    switch_context(from, *next);
  } else {
    switch_context(from, native);
  }
  // Here `this` may be another thread's worker.
  this_place().arrive();
}

stack* place::take_stack() noexcept {
  if (stack* s = spare_) {
    spare_ = nullptr;
    return s;
  }
  try {
    stack* s = owner->stacks.take();
    s->type = &resumed_stack;
    s->home = owner;
    return s;
  } catch (const error& e) {
    // Nobody is there to catch: the task was taken from a queue.
    std::fprintf(stderr, "strata: %s\n", e.what());
    std::_Exit(1);
  }
}

void place::give_stack(stack* s) noexcept {
  if (spare_ == nullptr) {
    spare_ = s;
  } else {
    owner->stacks.give(s);
  }
}

stack* place::prepare_stack(task& t) noexcept {
  stack* const s = take_stack();
  s->running = &t;
  s->kind = t.type;
  events.dispatched.add();
  return s;
}

void run_on_stack(task& t, worker& w) {
  auto& p = static_cast<place&>(w);
  p.continue_stack(*p.prepare_stack(t));
}

}  // namespace strata::detail
