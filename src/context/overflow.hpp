// SPDX-License-Identifier: Apache-2.0
// A stack overflow ends the program with the name of the task instead of a bare segmentation fault.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace strata::detail {

class stack_pool;
struct stack;

// Names the task of s, which is one of `pool`, and what to do, and ends the program. `caught`: by a
// guard page, before anything was overwritten. Async-signal-safe.
[[noreturn]] void report_overflow(const stack& s, const stack_pool& pool, bool caught) noexcept;

// Signal handlers can take no lock: a fixed table of atomics. A pool more than this many in one
// process is simply not watched. Debuggers find all pools here, too. Enough for 16 runtimes at the
// same time with as many pools of the usual size as each can have (sched/stack_pools.cpp).
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

// On an OS thread that does something for tasks on its own stack, which the C library has made with
// a guard page. One object on each such thread.
class watched_os_stack {
 public:
  watched_os_stack() noexcept;
  ~watched_os_stack();
  watched_os_stack(const watched_os_stack&) = delete;
  watched_os_stack& operator=(const watched_os_stack&) = delete;

  // What is done from now on is for what runs on s, which waits meanwhile; null: for nobody.
  // Relaxed: who else reads it is a handler on the same OS thread.
  void works_for(const stack* s) noexcept { for_whom_.store(s, std::memory_order_relaxed); }
  // For whom the calling OS thread does something; null: for nobody.
  [[nodiscard]] static const stack* worked_for_here() noexcept;

  // Names it and ends the program if `address` is in the guard page and there is somebody to name.
  // Async-signal-safe.
  void report_if_guarding(std::uintptr_t address) const noexcept;

 private:
  const signal_stack for_handler_;
  std::uintptr_t bottom_ = 0;  // the guard page lies below; 0: unknown
  std::size_t bytes_ = 0;
  std::atomic<const stack*> for_whom_{nullptr};
};

}  // namespace strata::detail
