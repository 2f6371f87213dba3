// SPDX-License-Identifier: Apache-2.0
// Waiting for one completion: the waiter gives up its stack until somebody completes.
#pragma once
#include <cstddef>

#include "strata/detail/join_word.hpp"
#include "strata/detail/worker.hpp"

namespace strata::detail {

struct stack;
class place;

// Gives the calling stack up. Once it is off the stack, the worker calls commit(stack, argument):
// true leaves it suspended until resume(), which may already run on another worker by then; false
// continues it at once. May return on another OS thread.
void suspend(bool (*commit)(stack&, void*), void* argument);

// While one exists, what runs on the calling stack is a part of the task that waits for it on
// another: its thread, with the name, the worker that it is pinned to, and the locks and values
// that it has.
class on_behalf_of {
 public:
  explicit on_behalf_of(stack& waiting);
  ~on_behalf_of();
  on_behalf_of(const on_behalf_of&) = delete;
  on_behalf_of& operator=(const on_behalf_of&) = delete;

 private:
  stack& waiting_;
};

// suspend() for who can be found already by whoever will resume it, and is kept from it by a lock
// that then(worker, argument) gives back, called within some instructions and off the calling
// stack. False, and nothing has happened, where somebody might wait for longer: a new stack would
// have to be made for who goes on here. `what`, `where`: what the stack waits for, for people. In
// an `uninterrupted` section.
[[nodiscard]] bool suspend_at_once(void (*then)(place&, void*), void* argument, const char* what,
                                   const void* where) noexcept;

// The stack that calls. Not in a fiber, not outside a runtime.
[[nodiscard]] stack& calling_stack() noexcept;

// Whether nothing else is ready on the caller's worker, as far as it can tell at a glance.
[[nodiscard]] bool nothing_else_is_ready() noexcept;

// suspend() for who waits for `first` to run, where that is the next task here anyway: commit() is
// called at once, nobody can resume before `first` begins, which it does as the calling stack is
// given up. False, and nothing has happened, where it is not the next. commit() says what the stack
// waits for. In an `uninterrupted` section.
bool suspend_for(task& first, void (*commit)(stack&, void*), void* argument);

// Throws misuse_error unless the caller runs on a stack that can be suspended: not in a fiber, not
// while it holds its worker, not outside a runtime.
void require_stack();

// Whether the calling stack is nearly used up, so that more nesting should go to another one.
bool stack_is_low() noexcept;

// How much of the calling stack is unused; 0 in a fiber and outside a runtime.
[[nodiscard]] std::size_t stack_bytes_left() noexcept;

// Continues a suspended stack, as the next thing `w` does; or, if it belongs to another runtime
// than w, soon on one of that runtime's workers.
void resume(worker& w, stack& s);

// Lets those run that are ready before the calling stack goes on; outside a runtime, other OS
// threads. No effect in a fiber, or while the caller holds its worker.
void yield_stack() noexcept;

// Continues a suspended stack after those that wait already, on whichever worker comes first. Any
// thread.
void make_ready(stack& s) noexcept;

// One waiter, one completion.
class join_point {
 public:
  // Suspends until complete(). What the completer did before is visible. Partner: complete().
  void wait() {
    if (!done()) suspend(&commit, this);
  }

  // May be called once. `this` may be gone when it returns.
  void complete(worker& w) noexcept {
    if (stack* waiter = word_.complete()) resume(w, *waiter);
  }

  [[nodiscard]] bool done() const noexcept { return word_.done(); }

 private:
  static bool commit(stack& s, void* self) {
    return static_cast<join_point*>(self)->word_.commit(s);
  }

  join_word<stack> word_;
};

// task_type::run of every task that owns a stack: takes a stack from the pool and calls the task's
// body on it.
void run_on_stack(task& t, worker& w);

}  // namespace strata::detail
