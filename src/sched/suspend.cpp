// SPDX-License-Identifier: Apache-2.0
// A stack waits: it is taken off its worker, and put back when what it waits for has happened.
#include <string>
#include <utility>

#include "base/spelling.hpp"
#include "context/exceptions.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/profile.hpp"
#include "strata/error.hpp"
#include "strata/fork_join.hpp"

namespace strata::detail {
namespace {

struct request {
  bool (*commit)(stack&, void*);
  void* argument;
  stack* waiter;
};

void commit_request(place& p, void* argument) {
  // A copy: once committed, the stack that holds the original may run elsewhere.
  const request r = *static_cast<request*>(argument);
  if (r.commit(*r.waiter, r.argument)) return;
  if (r.waiter->pinned_to != nullptr) return p.put_stack(*r.waiter);
  p.put_stack_in_front(*r.waiter);
  p.offer_what_was_left();
}

[[noreturn]] void refuse_to_block(const worker& w) {
  if (w.owner == nullptr) {
    throw misuse_error(
        "a fork or a wait outside a runtime: call it from within strata::runtime::run()");
  }
  if (w.is_held) {
    throw misuse_error(
        "the function of strata::per_worker::use() must not fork or wait: whoever runs on this "
        "worker meanwhile would find the value in use; take what is needed out of it, and wait "
        "afterwards");
  }
  throw misuse_error(std::string("a fiber must not block or fork (") +
                     std::string(w.running != nullptr ? plain_name(w.running()) : "unknown fiber") +
                     "): send a token and let a sync slot continue");
}

}  // namespace

void require_stack() {
  const place& p = this_place();
  if (p.owner == nullptr || p.current == nullptr || p.is_held) refuse_to_block(p);
}

void suspend(bool (*commit)(stack&, void*), void* argument) {
  require_stack();
  place& p = this_place();
  stack& here = *p.current;
  here.waits_for = "task to end";  // unless commit() knows better
  here.waits_at = nullptr;
  p.events.suspensions.add();
  strand* const measured = p.current_strand;
  if (measured != nullptr) strand_pause();
  request r{commit, argument, &here};
  p.leave_stack(&commit_request, &r);
  here.waits_for = nullptr;
  if (measured != nullptr) strand_resume(*measured);
}

on_behalf_of::on_behalf_of(stack& waiting) : waiting_(waiting) {
  stack& here = *this_place().current;
  here.self = waiting.self;
  here.thread = waiting.thread;
  here.at_end = waiting.at_end;
  here.title = waiting.title;
  here.pinned_to = waiting.pinned_to;
  // Another worker may have taken it: it is put back to where it belongs.
  if (here.pinned_to != nullptr && here.pinned_to != &this_place())
    suspend([](stack&, void*) { return false; }, nullptr);
}

// What the task has got meanwhile stays with it: its first value, a name, or a worker.
on_behalf_of::~on_behalf_of() {
  stack& here = *this_place().current;
  waiting_.thread = std::exchange(here.thread, nullptr);
  waiting_.at_end = std::exchange(here.at_end, nullptr);
  waiting_.title = std::exchange(here.title, nullptr);
  waiting_.pinned_to = std::exchange(here.pinned_to, nullptr);
  here.self = &here;
}

void resume(worker& w, stack& s) {
  const uninterrupted guard;
  if (s.pinned_to != nullptr) {
    s.pinned_to->deliver(s);
  } else if (s.home == w.owner) [[likely]] {
    static_cast<place&>(w).put_stack_in_front(s);
  } else {
    // Completed by a task of another runtime.
    s.home->continue_here(s);
  }
}

void make_ready(stack& s) noexcept {
  const uninterrupted guard;
  place& p = this_place();
  if (s.pinned_to != nullptr) {
    s.pinned_to->deliver(s);
  } else if (s.home == p.owner) [[likely]] {
    p.put_free_stack(s);
    p.owner->ready_appeared(p);
  } else {
    s.home->continue_here(s);
  }
}

std::size_t stack_bytes_left() noexcept {
  const stack* const s = this_place().current;
  if (s == nullptr) return 0;
  return stack_pointer() - reinterpret_cast<std::uintptr_t>(s->bottom);
}

bool stack_is_low() noexcept {
  const place& p = this_place();
  return stack_pointer() <= p.current->limit;
}

bool fork_needs_stack() {
  require_stack();
  this_worker().events.forks.add();
  return stack_is_low();
}

bool call_needs_stack() {
  require_stack();
  return stack_bytes_left() <= reserve_for_calls(this_place().current->bytes);
}

void call_on_fresh_stack(task& t, join_point& join) {
  const uninterrupted guard;
  place& p = this_place();
  p.require_spare();
  p.ready.push_front(&t);
  join.wait();
}

}  // namespace strata::detail
