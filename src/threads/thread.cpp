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

[[noreturn]] void refuse(std::errc code, const char* what) {
  throw std::system_error(std::make_error_code(code), what);
}

// Made before there is no memory: what it says needs some.
const std::system_error no_memory(std::make_error_code(std::errc::resource_unavailable_try_again),
                                  "strata::thread: no memory for one more");

// What threads without a name are called. For debuggers, which cannot call these, their symbols say
// the same: see tools/gdb/strata-gdb.py.
const char* kind_task() { return "task"; }
const char* kind_thread() { return "thread"; }

// Adopted: the block of a task that was not made as a thread. Nobody joins it.
constexpr task_type adopted{nullptr, nullptr, nullptr, &kind_task};

void destroy_specifics(thread_block& b) {
  if (b.extras != nullptr) end_specifics(b.extras->specifics, b.extras->at_exit);
}

void deallocate_block(task& t, worker& w) {
  w.frames.deallocate(&t, static_cast<thread_block&>(t).bytes);
}
constexpr task_type block_to_free{&deallocate_block, nullptr, nullptr, &kind_task};

void destroy_call(thread_block& b) noexcept {
  if (b.destroy != nullptr) b.destroy(b);
}

void free_block(thread_block& b) noexcept {
  delete b.extras;
  if (worker& w = this_worker(); w.owner == b.home) {
    w.frames.deallocate(&b, b.bytes);
  } else {
    // Only its own workers can.
    b.type = &block_to_free;
    b.home->inject(&b);
  }
}

void end_adopted(stack& s) {
  auto* const b = static_cast<thread_block*>(s.thread);
  destroy_specifics(*b);
  s.thread = nullptr;
  s.at_end = nullptr;
  delete b->extras;
  delete b;
}

// The last thing: b may be gone afterwards.
void complete(thread_block& b) noexcept {
  if (b.type != &sized_thread) this_place().threads_ended.add();
  // Release: the joiner sees what the thread did. Acquire: we see what the joiner saved of itself.
  // Partner: join_thread(), detach_thread().
  std::uintptr_t before = b.ending.load(std::memory_order_acquire);
  if (before == thread_block::alive || before == thread_block::joined_from_outside) {
    before = b.ending.exchange(thread_block::ended, std::memory_order_acq_rel);
  } else {
    // A stack that joins stays until we continue it, and who detached has left: nobody else writes
    // here, and the locked instruction can be saved.
    b.ending.store(thread_block::ended, std::memory_order_release);
  }
  switch (before) {
    case thread_block::alive:
      break;
    case thread_block::detached:
      free_block(b);
      break;
    case thread_block::joined_from_outside:
      unpark(&b.ending, 1);
      break;
    default:
      this_place().end_in(*reinterpret_cast<stack*>(before));
  }
}

void say_who_is_joined(stack& s, thread_block& b) {
  s.waits_for = "thread to end";
  s.waits_at = &b;
}

bool commit_join(stack& s, void* argument) {
  auto& b = *static_cast<thread_block*>(argument);
  say_who_is_joined(s, b);
  std::uintptr_t expected = thread_block::alive;
  return b.ending.compare_exchange_strong(expected, reinterpret_cast<std::uintptr_t>(&s),
                                          std::memory_order_acq_rel, std::memory_order_acquire);
}

// Of a thread that has not begun, and does so here.
void commit_early_join(stack& s, void* argument) {
  auto& b = *static_cast<thread_block*>(argument);
  say_who_is_joined(s, b);
  // Relaxed: whoever ends the thread comes after its beginning, which comes after this.
  b.ending.store(reinterpret_cast<std::uintptr_t>(&s), std::memory_order_relaxed);
}

bool has_not_ended(void* argument) {
  return static_cast<thread_block*>(argument)->ending.load(std::memory_order_acquire) !=
         thread_block::ended;
}

void sized_body(task& t) { static_cast<thread_block&>(t).extras->body(t); }

}  // namespace

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

void refuse_join() { refuse(std::errc::invalid_argument, "strata::thread: not joinable"); }

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
    refuse(std::errc::resource_unavailable_try_again, problem.what());
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

// It will run there, and is none of those that are counted: see room.cpp.
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
  if (a.stack_bytes > largest) refuse(std::errc::invalid_argument, "strata::thread: stack_bytes");
  e.stack_bytes = std::bit_ceil(std::max(a.stack_bytes, smallest));
  // It is taken here, where a refusal can be told.
  try {
    give_own_stack(b, this_place().owner->stacks_of(e.stack_bytes).take());
  } catch (const error& problem) {
    refuse(std::errc::resource_unavailable_try_again, problem.what());
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

void drop_thread(thread_block& b) noexcept {
  if (b.extras != nullptr && b.extras->own_stack != nullptr) {
    stack* const s = b.extras->own_stack;
    s->pool->give(s);
  }
  b.home = this_worker().owner;
  destroy_call(b);
  free_block(b);
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
  if (!p.owner->try_room(p)) [[unlikely]] {
    if (start_on_smaller_stack(b, p)) return;
    p.owner->require_room(p);  // says why there is none, unless there is by now
  }
  try {
    start_counted_thread(b);
  } catch (...) {
    this_place().threads_ended.add();  // it was counted: see room.cpp
    throw;
  }
}

namespace {

// What is special about a thread while its function runs.
class thread_manners {
 public:
  explicit thread_manners(thread_block& b) {
    place& p = this_place();
    stack& s = *p.current;
    s.thread = &b;
    if (b.extras != nullptr) [[unlikely]]
      take_up(b, p, s);
  }
  ~thread_manners() {
    place& p = this_place();
    stack& s = *p.current;
    s.thread = nullptr;
    s.pinned_to = nullptr;
    s.title = nullptr;
    if (limit_ != 0) [[unlikely]]
      leave_off(p, s);
  }
  thread_manners(const thread_manners&) = delete;
  thread_manners& operator=(const thread_manners&) = delete;

 private:
  [[gnu::noinline]] void take_up(thread_block& b, place& p, stack& s) {
    s.pinned_to = b.extras->pinned_to;
    if (!b.extras->name.empty()) s.title = b.extras->name.c_str();
    if (!b.extras->preemptible) return;
    limit_ = s.limit;
    // A fork pushes in the middle of the program's code, where it could be interrupted: it goes on
    // on a stack of its own instead.
    s.limit = p.stack_limit = UINTPTR_MAX;
    p.owner->preemption.begin();
    p.preemptible.store(true, std::memory_order_relaxed);
  }
  [[gnu::noinline]] void leave_off(place& p, stack& s) const {
    p.preemptible.store(false, std::memory_order_relaxed);
    s.limit = p.stack_limit = limit_;
    p.owner->preemption.end();
  }

  std::uintptr_t limit_ = 0;  // not 0: preemptible
};

}  // namespace

// An exception that leaves the thread ends the program: see context/last_frame.cpp.
void run_thread(thread_block& b, void (*invoke)(thread_block&)) {
  {
    const thread_manners manners(b);
    try {
      invoke(b);
    } catch (const thread_exit&) {
      // pthread_exit(): everything on the stack is gone.
    }
    // By the thread itself: somebody may wait for what its function or an argument does at its end,
    // and join afterwards.
    destroy_call(b);
    destroy_specifics(b);
  }
  complete(b);
}

namespace {

// From outside, or not for ever. False: the deadline came first.
[[gnu::noinline]] bool park_until_end(thread_block& b, std::int64_t deadline_ns) {
  std::uintptr_t expected = thread_block::alive;
  b.ending.compare_exchange_strong(expected, thread_block::joined_from_outside,
                                   std::memory_order_acq_rel);
  while (b.ending.load(std::memory_order_acquire) != thread_block::ended) {
    const unparked why = park({.what = "thread to end",
                               .address = &b.ending,
                               .still = &has_not_ended,
                               .argument = &b,
                               .deadline_ns = deadline_ns});
    if (why == unparked::timed_out) {
      // Somebody may join it again, in any way.
      std::uintptr_t ours = thread_block::joined_from_outside;
      if (b.ending.compare_exchange_strong(ours, thread_block::alive, std::memory_order_acq_rel))
        return false;
    }
  }
  return true;
}

// Who joins goes on when `mine` ends, so it stays as long as `mine` looks. Partner: commit_join().
// Two that begin at once miss each other.
bool is_joined_by(const thread_block& mine, const thread_block& b) noexcept {
  const std::uintptr_t joiner = mine.ending.load(std::memory_order_acquire);
  return joiner > thread_block::joined_from_outside &&
         reinterpret_cast<const stack*>(joiner)->thread == &b;
}

}  // namespace

bool join_thread(thread_block& b, std::int64_t deadline_ns) {
  const uninterrupted guard;
  thread_block* const mine = current_block_if_any();
  if (&b == mine)
    refuse(std::errc::resource_deadlock_would_occur, "strata::thread::join: the calling thread");
  if (b.ending.load(std::memory_order_acquire) != thread_block::ended) {
    if (mine != nullptr && is_joined_by(*mine, b)) [[unlikely]]
      refuse(std::errc::resource_deadlock_would_occur,
             "strata::thread::join: a thread that joins the calling one");
    if (deadline_ns == parking::never && this_worker().owner != nullptr) {
      if (!suspend_for(b, &commit_early_join, &b)) suspend(&commit_join, &b);
    } else if (!park_until_end(b, deadline_ns)) {
      return false;
    }
  }
  free_block(b);
  return true;
}

void detach_thread(thread_block& b) noexcept {
  const uninterrupted guard;
  std::uintptr_t expected = thread_block::alive;
  if (!b.ending.compare_exchange_strong(expected, thread_block::detached, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
    free_block(b);
}

thread_block* current_block_if_any() noexcept {
  const worker& w = this_worker();
  if (w.owner == nullptr) return nullptr;
  const stack* const s = static_cast<const place&>(w).current;
  return s != nullptr ? static_cast<thread_block*>(s->thread) : nullptr;
}

thread_block* current_block() {
  require_stack();
  const uninterrupted guard;
  stack& s = *this_place().current;
  if (s.thread == nullptr) {
    s.thread = new thread_block(adopted, 0);
    s.at_end = &end_adopted;
  }
  return static_cast<thread_block*>(s.thread);
}

unparked begin_wait(thread_block& b, waiter& w) noexcept {
  const std::lock_guard lock(b.extras->lock);
  if (b.extras->interrupted && w.heeds_interruption) return unparked::interrupted;
  if (b.extras->signalled.load(std::memory_order_relaxed)) return unparked::signalled;
  b.extras->parked = &w;
  return unparked::woken;
}

void end_wait(thread_block& b) noexcept {
  const std::lock_guard lock(b.extras->lock);
  b.extras->parked = nullptr;
}

void interrupt(thread_block& b) noexcept {
  const uninterrupted guard;
  const std::lock_guard lock(b.extras->lock);
  b.extras->interrupted = true;
  waiter* const parked = b.extras->parked;
  if (parked != nullptr && parked->heeds_interruption) wake(*parked, unparked::interrupted);
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
  return b != nullptr && b->bytes != 0 ? ids::of(b) : ids::of(s);
}

}  // namespace this_thread

unsigned thread::hardware_concurrency() noexcept {
  const detail::worker& w = detail::this_worker();
  return w.owner != nullptr ? w.owner->workers() : std::thread::hardware_concurrency();
}

void thread::join() {
  if (block_ == nullptr) detail::refuse_join();
  detail::join_thread(*block_, detail::parking::never);
  block_ = nullptr;
}

void thread::detach() {
  if (block_ == nullptr) detail::refuse_join();
  detail::detach_thread(*std::exchange(block_, nullptr));
}

}  // namespace strata
