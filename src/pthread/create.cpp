// SPDX-License-Identifier: Apache-2.0
// Making and joining threads.
#include "pthread/create.hpp"

#include <limits.h>

#include <bit>
#include <cerrno>
#include <exception>
#include <optional>
#include <utility>

#include "context/floating_point.hpp"
#include "context/given_memory.hpp"
#include "context/program_locals.hpp"
#include "pthread/affinity.hpp"
#include "pthread/default_attributes.hpp"
#include "pthread/exit.hpp"
#include "pthread/fork.hpp"
#include "pthread/process_runtime.hpp"
#include "pthread/record.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "sched/program_ticks.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/join.hpp"
#include "strata/error.hpp"

namespace strata::detail::posix {
namespace {

// Whether there are too many threads is for who makes one to know, not for the worker that begins
// it. So those with a stack of the usual size are counted when they are made (sched/room.cpp), and
// take one when they begin; one of another size is taken when its thread is made.

// The program's own thread-local variables, where they are the thread's. It stays on this OS
// thread: compilers keep their addresses.
void begin_with_own_locals() noexcept {
  if constexpr (carries_program_locals) {
    if (program_locals_bytes() == 0) return;
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
  run_to_exit(r);
  r.leaving = true;
  if (r.is_os_thread) end_process_with(r);  // the child of a fork
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
  if (t.type->run == &run_on_stack) p.threads_ended.add();  // it was counted: see sched/room.cpp
  end_record(r);
}

constexpr task_type usual{&run_on_stack, &body, nullptr, &kind_pthread};
constexpr task_type sized{&run_on_own_stack, &body, nullptr, &kind_pthread};

struct wanted_thread {
  bool detached = false;
  std::size_t asked_bytes = 0;       // of stack; 0: the runtime's usual
  bool accepts_more = false;         // the usual will do if it is as large
  std::byte* given_stack = nullptr;  // the program's own, of that size
  bool inherits = true;
  int policy = SCHED_OTHER;
  int priority = 0;
  std::optional<sigset_t> mask;  // none: its maker's
};

int read_attributes(const pthread_attr_t* a, wanted_thread& r) {
  int state = 0;
  if (const int error = pthread_attr_getdetachstate(a, &state)) return error;
  r.detached = state == PTHREAD_CREATE_DETACHED;
  int inheritance = PTHREAD_INHERIT_SCHED;
  pthread_attr_getinheritsched(a, &inheritance);
  if (inheritance == PTHREAD_EXPLICIT_SCHED) {
    sched_param parameters{};
    pthread_attr_getschedpolicy(a, &r.policy);
    pthread_attr_getschedparam(a, &parameters);
    r.inherits = false;
    r.priority = parameters.sched_priority;
    if (const int error = check_scheduling(r.policy, r.priority)) return error;
  }
  sigset_t mask;
  if (pthread_attr_getsigmask_np(a, &mask) == 0) r.mask = mask;
  std::size_t bytes = 0;
  void* lowest = nullptr;
  if (const int error = pthread_attr_getstack(a, &lowest, &bytes)) return error;
  // Where none was given the C library counts down from null; where no size was it counts none.
  const std::uintptr_t top = reinterpret_cast<std::uintptr_t>(lowest) + bytes;
  if (const int error = pthread_attr_getstacksize(a, &bytes)) return error;
  if (top != 0) {
    r.given_stack = reinterpret_cast<std::byte*>(top) - bytes;
    r.asked_bytes = bytes;
    return 0;
  }
  // What the C library has begun with is in the size of the process's runtime already.
  r.accepts_more = bytes == default_stack_bytes();
  if (r.accepts_more && !defaults_have_changed()) return 0;
  constexpr std::size_t largest = std::size_t{1} << 30;
  if (bytes > largest) return EAGAIN;
  r.asked_bytes = bytes;
  return 0;
}

int read_wanted(const pthread_attr_t* a, wanted_thread& r) {
  if (a != nullptr) return read_attributes(a, r);
  if (!defaults_have_changed()) return 0;
  pthread_attr_t defaults;
  if (const int error = strata_pthread_getattr_default_np(&defaults)) return error;
  const int error = read_attributes(&defaults, r);
  pthread_attr_destroy(&defaults);
  return error;
}

// Of its own; 0: the usual one.
std::size_t bytes_of_stack(const wanted_thread& wanted, const scheduler& home) noexcept {
  if (wanted.asked_bytes == 0 || wanted.given_stack != nullptr) return 0;
  if (wanted.accepts_more && wanted.asked_bytes <= home.stacks.stack_bytes()) return 0;
  // Ours has its header in there, and calls into the runtime below the program's own.
  constexpr std::size_t for_us = 16 * 1024;
  return std::bit_ceil(wanted.asked_bytes + for_us);
}

// What a new thread will run on: one more stack of the usual size that is spoken for, or a stack of
// its own; given back unless the thread is made.
class room {
 public:
  room(scheduler& home, std::size_t stack_bytes) noexcept : home_(home) {
    if (stack_bytes != 0) {
      take(stack_bytes);
      return;
    }
    has_usual_ = is_inside() ? home.try_room(this_place()) : home.try_room_from_outside();
    // Who asked for no size gets a smaller one when all of the usual size are in use.
    if (!has_usual_) own_ = take_smaller_stack(home);
  }
  ~room() {
    if (own_ != nullptr) own_->pool->give(own_);
    if (!has_usual_) return;
    if (is_inside()) {
      this_place().threads_ended.add();
    } else {
      home_.give_up_room_from_outside();
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

bool has_not_ended(void* r) {
  return (static_cast<record*>(r)->life.load(std::memory_order_acquire) & record::ended) == 0;
}

// While one exists, others find that the caller joins that thread.
class joins {
 public:
  joins(record* caller, const record* other) noexcept : caller_(caller) {
    if (caller_ != nullptr) caller_->joins.store(other, std::memory_order_seq_cst);
  }
  ~joins() {
    if (caller_ != nullptr) caller_->joins.store(nullptr, std::memory_order_relaxed);
  }
  joins(const joins&) = delete;
  joins& operator=(const joins&) = delete;

  // Said, then looked: of two that join each other one sees it, or both.
  [[nodiscard]] bool is_in_a_circle_with(const record& other) const noexcept {
    return caller_ != nullptr && other.joins.load(std::memory_order_seq_cst) == caller_;
  }

 private:
  record* const caller_;  // null: nobody can join it
};

int join(pthread_t t, void** result, const deadline& until) {
  if (const int error = until.check()) return error;
  record* const r = find_record(t);
  if (r == nullptr) return ESRCH;
  record* const mine = self_if_any();
  if (r == mine) return EDEADLK;
  act_on_cancellation();
  std::uint32_t life = r->life.load(std::memory_order_relaxed);
  do {
    if ((life & (record::detached | record::joining)) != 0) return EINVAL;
  } while (!r->life.compare_exchange_weak(life, life | record::joining, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
  {
    const joins here(mine, r);
    while (has_not_ended(r)) {
      if (here.is_in_a_circle_with(*r)) {
        r->life.fetch_and(~record::joining, std::memory_order_relaxed);
        return EDEADLK;
      }
      const unparked why = park_or_give_way(until.bound({.what = "thread to end",
                                                         .address = &r->life,
                                                         .still = &has_not_ended,
                                                         .argument = r,
                                                         .interruptible = is_cancellable()}));
      if (why != unparked::interrupted && (why != unparked::timed_out || !until.has_passed()))
        continue;
      r->life.fetch_and(~record::joining, std::memory_order_relaxed);
      if (why == unparked::timed_out) return ETIMEDOUT;
      act_on_cancellation();
      return join(t, result, until);
    }
  }
  if (result != nullptr) *result = r->result;
  give_record(*r);
  return 0;
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
    room there(home, bytes_of_stack(wanted, home));
    if (!there) return EAGAIN;
    record* const r = take_record();
    if (r == nullptr) return EAGAIN;
    r->type = there.own() != nullptr ? &sized : &usual;
    r->more.own_stack = there.own();
    r->asked_bytes = wanted.asked_bytes;
    r->given_stack = wanted.given_stack;
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

int strata_pthread_join(pthread_t thread, void** result) {
  if (!is_ours(thread)) return pthread_join(thread, result);
  const kept_errno keep;
  return join(thread, result, {});
}

int strata_pthread_clockjoin_np(pthread_t thread, void** result, clockid_t clock,
                                const timespec* until) {
  if (!is_ours(thread)) return pthread_clockjoin_np(thread, result, clock, until);
  const kept_errno keep;
  return join(thread, result, {clock, until});
}

int strata_pthread_timedjoin_np(pthread_t thread, void** result, const timespec* until) {
  return strata_pthread_clockjoin_np(thread, result, CLOCK_REALTIME, until);
}

int strata_pthread_tryjoin_np(pthread_t thread, void** result) {
  if (!is_ours(thread)) return pthread_tryjoin_np(thread, result);
  record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  if (r == self_if_any()) return EDEADLK;
  if (has_not_ended(r)) return EBUSY;
  const kept_errno keep;
  return join(thread, result, {});
}

int strata_pthread_detach(pthread_t thread) {
  if (!is_ours(thread)) return pthread_detach(thread);
  record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  std::uint32_t life = r->life.load(std::memory_order_relaxed);
  do {
    if ((life & (record::detached | record::joining)) != 0) return EINVAL;
  } while (!r->life.compare_exchange_weak(life, life | record::detached, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
  if ((life & record::ended) != 0) give_record(*r);
  return 0;
}

pthread_t strata_pthread_self() { return handle_of(self()); }

int strata_pthread_equal(pthread_t a, pthread_t b) { return a == b ? 1 : 0; }
}
