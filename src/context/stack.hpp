// SPDX-License-Identifier: Apache-2.0
// Contexts that a worker can be in, and the switch between them, with the sanitizers told.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/detail/task.hpp"

namespace strata::detail {

// Something that can be continued: a worker's own OS stack, or a stack of the pool.
struct context {
  void* sp = nullptr;      // where it stopped; meaningless while it runs
  void* bottom = nullptr;  // lowest address, for AddressSanitizer
  std::size_t bytes = 0;
  void* tsan_fiber = nullptr;  // ThreadSanitizer's idea of this context
};

struct strand;
class place;
class scheduler;
class stack_pool;

// A stack of the pool. Suspended and queued, it is the task of continuing it. The context may lie
// in other memory for a while: see given_memory.hpp.
struct stack : task, context {
  std::uintptr_t limit = 0;    // a fork below this address goes on on another stack
  place* pinned_to = nullptr;  // the only worker that may continue it; null: any
  stack* next_free = nullptr;  // in the list that it is in
  task* running = nullptr;     // what it was taken for
  const task_type* kind =
      nullptr;  // of `running`, which may be gone; null while the stack lies in the pool
  scheduler* home = nullptr;  // whose workers may continue it
  stack_pool* pool = nullptr;
  // threads/: the thread_block of what runs here, once it has one, and what to do for it at the
  // end.
  void* thread = nullptr;
  void (*at_end)(stack&) = nullptr;
  const char* title = nullptr;  // for people: the thread's own name, if it has one
  // For people, while it is suspended. Null: it waits for nothing but its turn.
  const char* waits_for = nullptr;
  const void* waits_at = nullptr;
  // 0 as long as it does; null: nobody knows. On this stack.
  const std::atomic<std::uint32_t>* waits_until = nullptr;
  // Whose task runs here: its own, or that of a stack which waits for it meanwhile. See
  // on_behalf_of.
  const stack* self = this;
  unsigned number = 0;  // for people; unique in this process
  // Grows with the tasks that have ended on it, and begins elsewhere in each pool: who runs here is
  // none of those that ran at this address before.
  std::uint32_t lives = 0;
  bool unguarded = false;      // no guard page below it, but a canary
  strand* measured = nullptr;  // profiling: the strand that stopped here
};

// What a fork leaves for the calls below it: functions of the program and of the C library that do
// not fork. Throwing alone takes some 6 KiB: the unwinder, and the dynamic linker's first look at
// it, which saves all vector registers.
constexpr std::size_t reserve_for_calls(std::size_t stack_bytes) noexcept {
  return std::max<std::size_t>(stack_bytes / 4, 8 * 1024);
}

// Continues `to`; returns when `from` is continued. `from_ends`: nobody ever will.
void switch_context(context& from, context& to, bool from_ends = false) noexcept;

// The calling OS thread's own stack.
context context_of_this_thread();

}  // namespace strata::detail
