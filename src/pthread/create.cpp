// SPDX-License-Identifier: Apache-2.0
// Making threads.
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <exception>

#include "context/floating_point.hpp"
#include "context/given_memory.hpp"
#include "context/program_locals.hpp"
#include "pthread/affinity.hpp"
#include "pthread/exit.hpp"
#include "pthread/fork.hpp"
#include "pthread/process_runtime.hpp"
#include "pthread/record.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "pthread/wanted_thread.hpp"
#include "sched/program_ticks.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/join.hpp"
#include "strata/error.hpp"
#include "strata/pthread.h"

namespace strata::detail::posix {
namespace {

// Whether there are too many threads is for who makes one to know, not for the worker that begins
// it. So those with a stack of the usual size are counted when they are made
// (sched/thread_limit.cpp), and take one when they begin; one of another size is taken when its
// thread is made.

// The program's own thread-local variables, where they are the thread's. It stays on this OS
// thread: compilers keep their addresses.
void begin_with_own_locals() noexcept {
  if constexpr (carries_program_locals) {
    if (program_locals().bytes() == 0) return;
    reset_program_locals();
    this_place().current->pinned_to = &this_place();
  }
}

// That of who has made it.
void begin_with_floating_point(const record& r) noexcept {
  if constexpr (carries_program_locals) r.floating_point_of_maker.put();
}

// All that is the program's.
void its_life(void* argument) {
  auto& r = *static_cast<record*>(argument);
  if (run_to_exit(r)) put_back_mask_of_main();
  r.leaving = true;
  if (r.is_os_thread) end_process_with(&r);  // the child of a fork
  end_values(r);
}

void live_on_given_stack(record& r) {
  // Of the runtime too, where the thread forks: see call_on_memory().
  const auto set_limit = [](std::uintptr_t limit) {
    place& p = this_place();
    p.stack_limit = p.current->limit = limit;
  };
  const std::uintptr_t limit = this_place().current->limit;
  set_limit(UINTPTR_MAX);
  call_on_memory(*this_place().current, r.given_stack, r.asked_bytes, &its_life, &r);
  set_limit(limit);
}

// An exception that leaves the thread ends the program: see context/last_frame.cpp.
void body(task& t) {
  auto& r = static_cast<record&>(static_cast<thread_block&>(t));
  this_place().current->thread = &r;
  r.runs_on.store(this_place().current, std::memory_order_release);
  this_place().current->title = r.title.data();
  begin_with_own_locals();
  begin_with_floating_point(r);
  r.given_stack != nullptr ? live_on_given_stack(r) : its_life(&r);
  end_signals(r);
  place& p = this_place();
  stack& s = *p.current;
  s.thread = nullptr;
  s.title = nullptr;
  s.pinned_to = nullptr;
  if (t.type->run == &run_on_stack) p.threads_ended.add();  // see sched/thread_limit.cpp
  end_record(r);
}

constexpr task_type usual{&run_on_stack, &body, nullptr, &kind_pthread};
constexpr task_type sized{&run_on_own_stack, &body, nullptr, &kind_pthread};

// What a new thread will run on: one more stack of the usual size that is spoken for, or a stack of
// its own; given back unless the thread is made.
class room {
 public:
  room(scheduler& home, std::size_t stack_bytes) noexcept : home_(home) {
    find(stack_bytes);
    if (*this) return;
    // Those that are about to end may wait for the caller's worker, and it may try until there is
    // room.
    strata::detail::yield_stack();
    find(stack_bytes);
  }
  ~room() {
    if (own_ != nullptr) own_->pool->give(own_);
    if (!has_usual_) return;
    if (is_inside()) {
      this_place().threads_ended.add();
    } else {
      home_.live_threads.discount_from_outside();
    }
  }
  room(const room&) = delete;
  room& operator=(const room&) = delete;
  explicit operator bool() const noexcept { return has_usual_ || own_ != nullptr; }
  [[nodiscard]] stack* own() const noexcept { return own_; }
  // It is the thread's.
  void release() noexcept {
    own_ = nullptr;
    has_usual_ = false;
  }

 private:
  [[nodiscard]] bool is_inside() const noexcept { return this_worker().owner == &home_; }
  void find(std::size_t stack_bytes) noexcept {
    if (stack_bytes != 0) {
      take(stack_bytes);
      return;
    }
    has_usual_ = is_inside() ? home_.live_threads.try_count_one(this_place())
                             : home_.live_threads.try_count_from_outside();
    // Who asked for no size gets a smaller one when all of the usual size are in use.
    if (!has_usual_) own_ = take_smaller_stack(home_);
  }
  void take(std::size_t bytes) noexcept {
    try {
      own_ = home_.stacks_of(bytes).take();
    } catch (const std::exception&) {
      // No address space, or no memory: there is none.
    }
  }

  scheduler& home_;
  stack* own_ = nullptr;
  bool has_usual_ = false;
};

void set_scheduling(record& r, const wanted_thread& wanted, record* parent) noexcept {
  int policy = wanted.policy;
  int priority = wanted.priority;
  if (wanted.inherits && parent != nullptr) {
    policy = parent->policy.load(std::memory_order_relaxed);
    priority = parent->priority.load(std::memory_order_relaxed);
  }
  r.policy.store(policy, std::memory_order_relaxed);
  r.priority.store(priority, std::memory_order_relaxed);
  if (parent != nullptr) inherit_affinity(r, *parent);
}

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* argument) {
  const kept_errno keep;
  wanted_thread wanted;
  if (const int error = read_wanted(attributes, wanted)) return error;
  try {
    scheduler& home = runtime_for_new_thread();
    const uninterrupted guard;
    record* const parent = self_if_any();
    // main() may have none, and leave as the C library has it.
    if (parent == nullptr && is_outside() && !watch_outside_end()) return EAGAIN;
    room there(home, bytes_of_stack(wanted, home));
    if (!there) return EAGAIN;
    record* const r = take_record();
    if (r == nullptr) return EAGAIN;
    r->type = there.own() != nullptr ? &sized : &usual;
    r->more.own_stack = there.own();
    r->asked_bytes = wanted.asked_bytes;
    r->given_stack = wanted.given_stack;
    r->guard_bytes = wanted.guard_bytes;
    r->inherits_scheduling = wanted.inherits;
    set_scheduling(*r, wanted, parent);
    if constexpr (carries_program_locals) r->floating_point_of_maker = floating_point::here();
    r->start = start;
    r->argument = argument;
    r->counted = true;
    r->home = &home;
    if (wanted.detached) r->life.store(record::detached, std::memory_order_relaxed);
    living.fetch_add(1, std::memory_order_relaxed);
    // main() is on an OS thread that was there before: only with a second one is there anybody to
    // give way to.
    if constexpr (carries_program_locals) begin_ticks_here();
    *thread = handle_of(*r);
    try {
      if (parent != nullptr) {
        end_left_handlers(*parent);
        inherit_signals(*r, *parent);
      } else {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        begin_mask(*r, mask, false);
      }
      if (wanted.mask.has_value()) change_mask(*r, SIG_SETMASK, &*wanted.mask, nullptr);
      this_worker().owner == &home ? start_counted_thread(*r) : home.inject(r);
    } catch (...) {
      end_signals(*r);
      r->more.own_stack = nullptr;
      r->life.store(record::detached, std::memory_order_relaxed);
      end_record(*r);
      throw;
    }
    there.release();
    return 0;
  } catch (const std::exception&) {
    return EAGAIN;  // memory, or address space for stacks
  }
}

pthread_t strata_pthread_self() { return handle_of(self()); }

int strata_pthread_equal(pthread_t a, pthread_t b) { return a == b ? 1 : 0; }
}
