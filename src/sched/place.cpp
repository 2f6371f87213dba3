// SPDX-License-Identifier: Apache-2.0
#include "sched/place.hpp"

#include <alloca.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "context/floating_point.hpp"
#include "context/program_locals.hpp"
#include "context/switch.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/check.hpp"
#include "strata/detail/profile.hpp"

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

void go_behind(place& p, void* s) {
  p.put_stack(*static_cast<stack*>(s));
  p.offer_what_was_left();
}
// Also behind those that have been brought meanwhile.
void go_behind_here(place& p, void* s) { p.deliver(*static_cast<stack*>(s)); }

void recycle(place& p, void* ended) {
  auto* s = static_cast<stack*>(ended);
  s->kind = nullptr;
  p.give_stack(s);
}

}  // namespace

void stack_main(void* argument) {
#if defined(STRATA_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  auto* s = static_cast<stack*>(argument);
  this_place().arrive();
  for (;;) {
    s->kind->body(*s->running);
    if (s->unguarded) [[unlikely]]
      check_canary(*s);
    if (s->at_end != nullptr) [[unlikely]]
      s->at_end(*s);
    ++s->lives;
    this_place().end_stack(*s);
  }
}

place::place(frame_depot& depot, scheduler& s, unsigned index)
    : worker(depot), idle_spin(s.spin_ticks()) {
  id = index;
  number = number_.value();
  owner = &s;
  failed = &s.failure.is_there;
  profiling = s.settings.profile;
  node = static_cast<std::uint16_t>(s.settings.node);
}

// Continues `to`; returns when `from` is continued.
[[gnu::always_inline]] static inline void change_to(context& from, context& to) noexcept {
#if defined(STRATA_SWITCH_INLINE)
  switch_context_inline(&from.sp, to.sp);
#else
  switch_context(from, to);
#endif
}

void place::continue_stack(stack& s) {
  current = &s;
  stack_limit = profiling ? UINTPTR_MAX : s.limit;
  if constexpr (carries_program_locals) {
    // What has occurred is nobody's business here, and mostly the same for who is next.
    const floating_point ours = floating_point::here();
    change_to(native, s);
    ours.put_modes();
  } else {
    change_to(native, s);
  }
  current = nullptr;
  stack_limit = UINTPTR_MAX;
  arrive();
}

// A hint is enough: whoever did has woken this worker if it slept.
inline bool place::others_made_ready() const noexcept {
  return batches.load(std::memory_order_relaxed) != nullptr || owner->injected_.has_ready();
}

bool place::has_nothing_else() const noexcept {
  return ready.empty() && !deque.maybe_work() && !others_made_ready();
}

inline bool place::yields_to_nobody() noexcept {
  if (!ready.empty()) return false;
  // Once in a while all the same: tokens from outside want to be looked at.
  return has_nothing_else() && !looks_for_messages() && (++idle_yields_ & 63) != 0;
}

// Whether the dispatcher need not have a look before the next task of the ready queue.
inline bool place::may_go_on() noexcept {
  if (switches_left_ == 0 || looks_for_messages() || profiling || others_made_ready()) return false;
  if (leave_->load(std::memory_order_relaxed) != root_task::running) return false;
  --switches_left_;
  if (distributes) [[unlikely]]
    owner->take_waived(*this);
  return true;
}

// Among many threads each comes out of a distant cache: those behind the one that goes on now are
// on their way while it runs.
constexpr std::size_t many_stacks = 16;
constexpr auto fetch_ahead = [](const task* next, const task* after_next) noexcept {
  prefetch(after_next);
  if (next->type == &resumed_stack) prefetch(static_cast<const stack*>(next)->sp);
};

// Null when the dispatcher should have a look, or nothing that owns a stack is next.
inline stack* place::next_stack() noexcept {
  if (!may_go_on()) return nullptr;
  task* const t = ready.pop(many_stacks, fetch_ahead);
  if (t == nullptr) return nullptr;
  if (t->type == &resumed_stack) {
    events.resumptions.add();
    return static_cast<stack*>(t);
  }
  if (t->type->run == &run_on_stack) {
    // Whoever leaves may hold a lock until it has left: nobody is to wait for the system meanwhile.
    if (stack* const s = stack_at_hand()) {
      begin_on(*s, *t);
      return s;
    }
  }
  ready.push_front(t);
  return nullptr;
}

void place::offer_what_was_left() noexcept {
  if (current != nullptr || has_bound()) owner->ready_appeared(*this);
}

void place::end_in(stack& waiter) noexcept {
  // Not before the others: who joins many does not want to be woken by each. And only where it may
  // go on without being put anywhere.
  if (waiter.home != owner || waiter.pinned_to != nullptr || distributes || !ready.empty())
    return make_ready(waiter);
  handed_over_ = &waiter;
}

// A part of stack_main(): as a call of its own it costs a thread's end 15 ns.
[[gnu::always_inline]] inline void place::end_stack(stack& s) noexcept {
  stack* next = std::exchange(handed_over_, nullptr);
  if (!may_go_on()) {
    if (next != nullptr) make_ready(*next);
    next = nullptr;
  } else if (next != nullptr) {
    events.resumptions.add();
  } else if (task* const t = ready.pop(many_stacks, fetch_ahead)) {
    if (t->type == &resumed_stack) {
      events.resumptions.add();
      next = static_cast<stack*>(t);
    } else if (t->type->run == &run_on_stack) {
      if (s.pool == &owner->stacks) return begin_on(s, *t);
      next = prepare_stack(*t);
      if (next == nullptr) [[unlikely]]
        ready.push_front(t);
    } else {
      ready.push_front(t);
    }
  }
  switch_to(next, &recycle, &s);
}

inline void place::switch_to(stack* next, void (*action)(place&, void*), void* argument) noexcept {
  [[maybe_unused]] const own_floating_point<carries_program_locals> kept;
  stack& from = *current;
  action_ = action;
  argument_ = argument;
  if (next != nullptr) {
    current = next;
    stack_limit = next->limit;
    change_to(from, *next);
  } else {
    change_to(from, native);
  }
  // Here `this` may be another thread's worker.
  this_place().arrive();
}

inline void place::switch_with_all(stack* next, void (*action)(place&, void*),
                                   void* argument) noexcept {
  if constexpr (carries_program_locals) {
    if (const program_locals locals; locals.bytes() != 0) {
      const std::size_t bytes = locals.bytes();
      // Stacks can be small. By malloc(): `new` may be the program's own, with locks that who has
      // been interrupted has.
      const bool many = bytes > program_locals_on_stack_max;
      const std::unique_ptr<void, decltype(&std::free)> kept(many ? std::malloc(bytes) : nullptr,
                                                             &std::free);
      STRATA_CHECK(!many || kept != nullptr, bytes);
      auto* const mine = static_cast<std::byte*>(many ? kept.get() : alloca(bytes));
      locals.save(mine);
      switch_with_exceptions(next, action, argument);
      return locals.load(mine);
    }
  }
  switch_with_exceptions(next, action, argument);
}

inline void place::switch_with_exceptions(stack* next, void (*action)(place&, void*),
                                          void* argument) noexcept {
  // Seldom any: who is in a handler, or is called by a destructor while an exception is on its way.
  if (exceptions->none()) [[likely]]
    return switch_to(next, action, argument);
  const exceptions_in_flight mine = std::exchange(*exceptions, {});
  switch_to(next, action, argument);
  *this_place().exceptions = mine;
}

void place::leave_stack(void (*action)(place&, void*), void* argument) noexcept {
  const uninterrupted guard;
  switch_with_all(next_stack(), action, argument);
}

static bool goes_on(const task& t) noexcept { return t.type == &resumed_stack; }

// Null: go the longer way. After this the stack is left at once, and nothing has to be put back
// when it goes on: who has thread-local variables of a program is bound to its worker.
inline stack* place::next_in_turn() noexcept {
  if (distributes || preemptible.load(std::memory_order_relaxed) || !exceptions->none() ||
      current->pinned_to != nullptr || !may_go_on())
    return nullptr;
  task* const t = ready.begin_rotation(current, goes_on, many_stacks, fetch_ahead);
  if (t != nullptr)
    events.resumptions.add();
  else
    ++switches_left_;  // which may_go_on() has taken
  return static_cast<stack*>(t);
}

// Most of the time the next is a thread that yielded, too. Then the queue is entered once, and left
// when the other is reached. No variable of this function outlives the switch, so that it needs no
// frame: what is kept of each stack comes out of a distant cache where there are many.
void place::yield() noexcept {
  if (stack* const next = next_in_turn()) return switch_to(next, nullptr, nullptr);
  yield_at_length();
}

[[gnu::noinline]] void place::yield_at_length() noexcept {
  const uninterrupted guard;
  switch_with_all(next_stack(), &go_behind, current);
}

// Before anything has been given up: to whom the stack can be left at once. Null for the worker's
// own stack, where the dispatcher does first what is asked of it.
inline bool place::next_at_once(stack*& next) noexcept {
  if (distributes) return false;
  next = nullptr;
  if (!may_go_on()) return true;
  task* t = nullptr;
  if (!ready.pop_if(t, goes_on, many_stacks, fetch_ahead)) return false;
  if (t == nullptr) return true;
  events.resumptions.add();
  next = static_cast<stack*>(t);
  return true;
}

bool place::leave_stack_at_once(void (*action)(place&, void*), void* argument, const char* what,
                                const void* where) noexcept {
  stack* next;
  if (!next_at_once(next)) return false;
  stack& here = *current;
  here.waits_for = what;
  here.waits_at = where;
  events.suspensions.add();
  strand* const measured = current_strand;
  if (measured != nullptr) [[unlikely]]
    strand_pause();
  switch_with_all(next, action, argument);
  here.waits_for = nullptr;
  if (measured != nullptr) [[unlikely]]
    strand_resume(*measured);
  return true;
}

// All in one function: making a thread and waiting for it takes this way each time.
bool place::leave_stack_for(task& t, void (*commit)(stack&, void*), void* argument) noexcept {
  if (t.type->run != &run_on_stack || !ready.is_front(&t) || !may_go_on() || !ready.take_front(&t))
    return false;
  stack* const next = prepare_stack(t);
  if (next == nullptr) [[unlikely]] {
    ready.push_front(&t);
    return false;
  }
  stack& here = *current;
  events.suspensions.add();
  strand* const measured = current_strand;
  if (measured != nullptr) [[unlikely]]
    strand_pause();
  commit(here, argument);
  switch_with_all(next, nullptr, nullptr);
  here.waits_for = nullptr;
  if (measured != nullptr) [[unlikely]]
    strand_resume(*measured);
  return true;
}

bool suspend_for(task& first, void (*commit)(stack&, void*), void* argument) {
  require_stack();
  return this_place().leave_stack_for(first, commit, argument);
}

bool suspend_at_once(void (*then)(place&, void*), void* argument, const char* what,
                     const void* where) noexcept {
  return this_place().leave_stack_at_once(then, argument, what, where);
}

stack& calling_stack() noexcept { return *this_place().current; }

bool place::nothing_waits() const noexcept {
  return has_nothing_else() && overflow.empty() && !has_bound() && !owner->injected_.has_any();
}

bool nothing_else_is_ready() noexcept { return this_place().nothing_waits(); }

void yield_stack() noexcept {
  place& p = this_place();
  if (p.owner == nullptr || p.current == nullptr || p.is_held) {
    if (p.owner == nullptr) std::this_thread::yield();
    return;
  }
  if (p.yields_to_nobody()) return;
  strand* const measured = p.current_strand;
  if (measured != nullptr) strand_pause();
  p.yield();
  if (measured != nullptr) strand_resume(*measured);
}

void place::give_way() noexcept {
  events.preemptions.add();
  // It has had the time of many turns: the dispatcher is to come soon to what has yet to begin.
  switches_left_ = 0;
  leave_stack(&go_behind_here, current);
}

void place::adopt(stack& s) noexcept {
  s.type = &resumed_stack;
  s.home = owner;
}

void place::give_stack(stack* s) noexcept {
  if (!has_spare() && s->pool == &owner->stacks) {
    spare_.put(*s);
  } else {
    s->pool->give(s);
  }
}

inline void place::begin_on(stack& s, task& t) noexcept {
  s.running = &t;
  s.kind = t.type;
  events.dispatched.add();
}

stack* place::prepare_stack(task& t) noexcept {
  stack* s = take_spare();
  if (s == nullptr) [[unlikely]]
    s = usual_stack();
  if (s != nullptr) [[likely]]
    begin_on(*s, t);
  return s;
}

inline void place::begin(task& t) noexcept {
  stack* s = prepare_stack(t);
  if (s == nullptr) [[unlikely]] {
    s = take_stack();
    begin_on(*s, t);
  }
  continue_stack(*s);
}

void run_on_stack(task& t, worker& w) { static_cast<place&>(w).begin(t); }

}  // namespace strata::detail
