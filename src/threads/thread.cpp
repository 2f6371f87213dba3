// SPDX-License-Identifier: Apache-2.0
#include "strata/thread.hpp"

#include <bit>
#include <exception>
#include <new>
#include <system_error>

#include "sched/scheduler.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/root_task.hpp"
#include "strata/error.hpp"
#include "threads/outside.hpp"
#include "threads/thread_block.hpp"

namespace strata::detail {
namespace {

// Made before there is no memory: what it says needs some.
const std::system_error no_memory(std::make_error_code(std::errc::resource_unavailable_try_again),
                                  "strata::thread: no memory for one more");

// What threads without a name are called. For debuggers, which cannot call these, their symbols say
// the same: see tools/gdb/strata-gdb.py.
const char* kind_thread() { return "thread"; }

void sized_body(task& t) { static_cast<thread_block&>(t).extras->body(t); }

}  // namespace

void refuse_thread(std::errc code, const char* what) {
  throw std::system_error(std::make_error_code(code), what);
}

void run_on_own_stack(task& t, worker& w) {
  auto& b = static_cast<thread_block&>(t);
  auto& p = static_cast<place&>(w);
  stack* const s = std::exchange(b.extras->own_stack, nullptr);
  p.adopt(*s);
  s->running = &t;
  s->kind = t.type;
  p.events.dispatched.add();
  p.continue_stack(*s);
}

constexpr task_type sized_thread{&run_on_own_stack, &sized_body, nullptr, &kind_thread};

void refuse_for_memory() { throw no_memory; }

void refuse_join() { refuse_thread(std::errc::invalid_argument, "strata::thread: not joinable"); }

thread_extras& extras_of(thread_block& b) {
  if (b.extras == nullptr) b.extras = new thread_extras;
  return *b.extras;
}

namespace {

// Where it cannot be started there is no room for a thread, as where it is full.
scheduler& runtime_for_outsiders() {
  try {
    return runtime_of_process();
  } catch (const std::bad_alloc&) {
    refuse_for_memory();
  } catch (const std::exception& problem) {
    refuse_thread(std::errc::resource_unavailable_try_again, problem.what());
  }
}

}  // namespace

void call_in_process_runtime(void (*f)(void*), void* argument) {
  auto call = [=] { f(argument); };
  root_call<decltype(call)> root(call);
  // Who waits for a fiber that has failed there is told of it; we do not.
  (void)runtime_for_outsiders().enter(root);
  root.out.take();
}

stack* take_smaller_stack(scheduler& home) noexcept {
  for (const std::size_t bytes :
       {std::size_t{8} << 20, std::size_t{1} << 20, std::size_t{256} << 10}) {
    if (bytes >= home.stacks.stack_bytes()) continue;
    try {
      stack_pool& pool = home.stacks_of(bytes);
      if (pool.left() != 0) return pool.take();
    } catch (const std::exception&) {
      // No address space, or no memory: there is none.
    }
  }
  return nullptr;
}

namespace {

// It will run there, and is none of those that are counted: see thread_limit.cpp.
void give_own_stack(thread_block& b, stack* s) {
  thread_extras& e = extras_of(b);
  e.own_stack = s;
  e.body = b.type->body;
  b.type = &sized_thread;
}

void take_attributes(thread_block& b, const thread_attributes& a) {
  thread_extras& e = extras_of(b);
  e.name = a.name;
  e.preemptible = a.preemptible && ticker::is_safe();
  if (e.preemptible) this_place().owner->preemption.prepare();
  e.pinned_to = a.pinned ? &this_place() : nullptr;
  e.priority = a.priority;
  if (a.stack_bytes == 0) return;
  constexpr std::size_t smallest = 16 * 1024;
  constexpr std::size_t largest = std::size_t{1} << 30;
  if (a.stack_bytes > largest)
    refuse_thread(std::errc::invalid_argument, "strata::thread: stack_bytes");
  e.stack_bytes = std::bit_ceil(std::max(a.stack_bytes, smallest));
  // It is taken here, where a refusal can be told.
  try {
    give_own_stack(b, this_place().owner->stacks_of(e.stack_bytes).take());
  } catch (const error& problem) {
    refuse_thread(std::errc::resource_unavailable_try_again, problem.what());
  }
}

}  // namespace

void set_attributes(thread_block& b, const thread_attributes& a) {
  const uninterrupted guard;
  try {
    take_attributes(b, a);
  } catch (const std::bad_alloc&) {
    refuse_for_memory();
  }
}

namespace {

[[nodiscard]] bool put_special(thread_block& b, place& p) noexcept {
  if (b.extras->pinned_to != nullptr) return p.try_put_bound(&b);
  return b.extras->priority > 0 ? p.ready.try_push_front(&b) : p.try_put(&b);
}

[[gnu::noinline]] void start_special(thread_block& b, place& p) {
  const bool bound = b.extras->pinned_to != nullptr;  // once it is put it may be another's
  if (!put_special(b, p)) refuse_for_memory();
  if (!bound) p.owner->ready_appeared(p);
}

}  // namespace

void start_counted_thread(thread_block& b) {
  place& p = this_place();
  b.home = p.owner;
  if (b.extras != nullptr) [[unlikely]]
    return start_special(b, p);
  if (!p.try_put(&b)) [[unlikely]]
    refuse_for_memory();
  p.owner->ready_appeared(p);
}

namespace {

// All stacks of the usual size are in use. Who has not asked for that size has a smaller one; all
// others are refused.
[[gnu::noinline]] bool start_on_smaller_stack(thread_block& b, place& p) {
  stack* const s = is_size_of_kernel_threads(*p.owner) ? take_smaller_stack(*p.owner) : nullptr;
  if (s == nullptr) return false;
  try {
    give_own_stack(b, s);
  } catch (const std::bad_alloc&) {
    s->pool->give(s);
    refuse_for_memory();
  }
  start_counted_thread(b);
  return true;
}

}  // namespace

void start_thread(thread_block& b) {
  if (b.type == &sized_thread) [[unlikely]]
    return start_counted_thread(b);
  place& p = this_place();
  if (!p.owner->live_threads.try_count_one(p)) [[unlikely]] {
    if (start_on_smaller_stack(b, p)) return;
    p.owner->live_threads.count_one(p);  // says why there is none, unless there is by now
  }
  try {
    start_counted_thread(b);
  } catch (...) {
    this_place().threads_ended.add();  // it was counted: see thread_limit.cpp
    throw;
  }
}

struct thread_ids {
  static thread::id of(const void* what) noexcept { return thread::id(what); }
};

void sleep_until_ns(std::int64_t deadline_ns) {
  const char nobody_wakes = 0;
  if (deadline_ns <= deadline_now()) return yield_stack();
  while (park({.what = "time to pass", .address = &nobody_wakes, .deadline_ns = deadline_ns}) !=
         unparked::timed_out) {
  }
}

}  // namespace strata::detail

namespace strata {

namespace this_thread {

void yield() noexcept { detail::yield_stack(); }

thread::id get_id() noexcept {
  using ids = detail::thread_ids;
  const detail::worker& w = detail::this_worker();
  if (w.owner == nullptr) {
    // A thread from outside: something of its own.
    static thread_local const char here = 0;
    return ids::of(&here);
  }
  const detail::stack* const s = static_cast<const detail::place&>(w).current;
  if (s == nullptr) return ids::of(&w);  // a fiber
  // A block that was adopted later must not change who we are.
  const auto* const b = static_cast<const detail::thread_block*>(s->thread);
  return b != nullptr && b->bytes != 0 ? ids::of(b) : ids::of(s->self);
}

}  // namespace this_thread

unsigned thread::hardware_concurrency() noexcept {
  const detail::worker& w = detail::this_worker();
  return w.owner != nullptr ? w.owner->workers() : std::thread::hardware_concurrency();
}

void thread::join() {
  if (block_ == nullptr) detail::refuse_join();
  detail::join_thread(*block_);
  block_ = nullptr;
}

void thread::detach() {
  if (block_ == nullptr) detail::refuse_join();
  detail::detach_thread(*std::exchange(block_, nullptr));
}

}  // namespace strata
