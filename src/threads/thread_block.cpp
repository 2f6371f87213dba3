// SPDX-License-Identifier: Apache-2.0
// The block of a thread: whose it is, and, as a thread ends once, who frees it. Its word `ending`
// says who waits for that.
#include "threads/thread_block.hpp"

#include <new>
#include <system_error>
#include <thread>

#include "sched/scheduler.hpp"
#include "strata/detail/check.hpp"
#include "strata/detail/future_state.hpp"
#include "strata/detail/join.hpp"

namespace strata::detail {
namespace {

// What tasks without a name are called; for debuggers the symbol says so, see kind_thread().
const char* kind_task() { return "task"; }

void deallocate_block(task& t, worker& w) {
  w.frames.deallocate(&t, static_cast<thread_block&>(t).bytes);
}
constexpr task_type block_to_free{&deallocate_block, nullptr, nullptr, &kind_task};

void destroy_call(thread_block& b) noexcept {
  if (b.destroy != nullptr) b.destroy(b);
}

// Only they can free it. Where their queue is full, and there is no memory for a longer one, it has
// room as soon as they have taken something: nobody could be told that it stays.
void leave_to_own_workers(thread_block& b) noexcept {
  b.type = &block_to_free;
  for (;;) {
    try {
      return b.home->inject(&b);
    } catch (const std::bad_alloc&) {
      std::this_thread::yield();
    }
  }
}

void free_block(thread_block& b) noexcept {
  delete b.extras;
  if (worker& w = this_worker(); w.owner == b.home) {
    w.frames.deallocate(&b, b.bytes);
  } else {
    leave_to_own_workers(b);
  }
}

void destroy_specifics(thread_block& b) {
  if (b.extras != nullptr) end_specifics(b.extras->specifics, b.extras->at_exit);
}

// Adopted: the block of a task that was not made as a thread. Nobody joins it.
constexpr task_type adopted{nullptr, nullptr, nullptr, &kind_task};

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

}  // namespace

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
    // Simulated workers have bound all that they run.
    if (b.extras->pinned_to != nullptr) s.pinned_to = b.extras->pinned_to;
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

// By who has joined it: while it runs, or somebody else joins it, its block is still needed.
void free_ended(thread_block& b) noexcept {
  const std::uintptr_t ending = b.ending.load(std::memory_order_acquire);
  STRATA_CHECK(ending == thread_block::ended, ending);
  free_block(b);
}

// Somebody may join it again, in any way. False: it has ended.
bool take_mark_back(thread_block& b) noexcept {
  std::uintptr_t ours = thread_block::joined_from_outside;
  return b.ending.compare_exchange_strong(ours, thread_block::alive, std::memory_order_acq_rel);
}

// From outside, or not for ever. False: the deadline came first. Throws as park().
[[gnu::noinline]] bool park_until_end(thread_block& b, std::int64_t deadline_ns) {
  std::uintptr_t expected = thread_block::alive;
  b.ending.compare_exchange_strong(expected, thread_block::joined_from_outside,
                                   std::memory_order_acq_rel);
  try {
    while (b.ending.load(std::memory_order_acquire) != thread_block::ended) {
      const unparked why = park({.what = "thread to end",
                                 .address = &b.ending,
                                 .still = &has_not_ended,
                                 .argument = &b,
                                 .deadline_ns = deadline_ns});
      if (why == unparked::timed_out && take_mark_back(b)) return false;
    }
  } catch (...) {
    // It could not wait, or is left here: see thread_exit.hpp.
    (void)take_mark_back(b);
    throw;
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

void join_thread(thread_block& b) {
  const uninterrupted guard;
  thread_block* const mine = current_block_if_any();
  if (&b == mine)
    refuse_thread(std::errc::resource_deadlock_would_occur,
                  "strata::thread::join: the calling thread");
  if (b.ending.load(std::memory_order_acquire) != thread_block::ended) {
    if (mine != nullptr && is_joined_by(*mine, b)) [[unlikely]]
      refuse_thread(std::errc::resource_deadlock_would_occur,
                    "strata::thread::join: a thread that joins the calling one");
    if (this_worker().owner == nullptr) {
      (void)park_until_end(b, parking::never);
    } else if (!suspend_for(b, &commit_early_join, &b)) {
      suspend(&commit_join, &b);
    }
  }
  free_ended(b);
}

bool await_end(thread_block& b, std::int64_t deadline_ns) {
  const uninterrupted guard;
  return !has_not_ended(&b) || park_until_end(b, deadline_ns);
}

void detach_thread(thread_block& b) noexcept {
  const uninterrupted guard;
  std::uintptr_t expected = thread_block::alive;
  if (!b.ending.compare_exchange_strong(expected, thread_block::detached, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
    free_ended(b);
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

}  // namespace strata::detail
