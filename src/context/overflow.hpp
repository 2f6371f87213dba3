// SPDX-License-Identifier: Apache-2.0
// A stack overflow ends the program with the name of the task instead of a bare segmentation fault.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace strata::detail {

class stack_pool;
struct stack;

// Names the task of s, which is one of `pool`, and what to do, and ends the program. `caught`: by a
// guard page, before anything was overwritten. Async-signal-safe.
[[noreturn]] void report_overflow(const stack& s, const stack_pool& pool, bool caught) noexcept;

// Signal handlers can take no lock: a fixed table of atomics. A pool more than this many in one
// process is simply not watched. Debuggers find all pools here, too. Enough for 16 runtimes at the
// same time with as many pools of the usual size as each can have (sched/stacks.cpp).
inline constexpr std::size_t watched_pools_max = 256;
extern constinit std::array<std::atomic<const stack_pool*>, watched_pools_max> watched_pools;

// Begins and ends watching the guard pages of `pool`. The first call installs a SIGSEGV handler;
// faults that are not ours go to whatever was installed before.
void watch_for_overflow(const stack_pool& pool);
void forget_overflow(const stack_pool& pool);

// The handler needs a stack of its own, on every OS thread whose tasks can overflow. One object on
// each such thread.
class signal_stack {
 public:
  signal_stack();
  ~signal_stack();
  signal_stack(const signal_stack&) = delete;
  signal_stack& operator=(const signal_stack&) = delete;

 private:
  std::unique_ptr<std::byte[]> memory_;  // null: the thread had one already
};

}  // namespace strata::detail
