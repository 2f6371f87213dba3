// SPDX-License-Identifier: Apache-2.0
// What is known of one thread: the task that begins it, who waits for its end, what it keeps for
// itself. Tasks that were not made as threads (run(), a stolen branch) get one when they ask for
// something that needs it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "strata/detail/task.hpp"
#include "strata/detail/worker.hpp"

namespace strata {

/// How a thread is to be made. Everything has a default.
struct thread_attributes {
  /// Shown by dump_threads(), in messages about overflow and about exceptions that leave the
  /// thread.
  std::string name{};
  /// Bytes of its stack, rounded up to a power of two; 0: options::stack_bytes.
  std::size_t stack_bytes = 0;
  /// Gives way to others after options::preempt_us even if it never blocks or yields. It is
  /// interrupted between any two instructions of the program (not of shared libraries, nor in what
  /// it forks), so it must not hold anything that blocks OS threads, like std::mutex or the
  /// initialisation of a static variable, while it computes for long; nor call token() or invoke(),
  /// or use task_scope. Signals to slots, locks of strata/mutex.hpp, forks and everything else here
  /// are fine. A handler of the program for another signal must have SIGURG, the tick, in its
  /// sa_mask. It goes on on the OS thread that it was interrupted on, unless that is the caller of
  /// a run() which has returned: a thread that outlives the run() must use no thread_local variable
  /// (errno is one). No effect where malloc or the C++ library is part of the program itself (a
  /// static executable, an allocator linked in, -static-libstdc++, the AddressSanitizer of clang
  /// without -shared-libasan), and in ThreadSanitizer builds.
  bool preemptible = false;
  /// Stays on the worker that made it.
  bool pinned = false;
  /// A hint: above 0, it begins before threads that were made earlier.
  int priority = 0;
};

namespace detail {

struct waiter;
struct thread_extras;

struct thread_block : task {
  thread_block(const task_type& t, std::size_t size) noexcept : task{&t}, bytes(size) {}
  thread_block(const thread_block&) = delete;
  thread_block& operator=(const thread_block&) = delete;

  // What becomes of it when it ends, and who waits for that: one of these, or the stack that joins.
  static constexpr std::uintptr_t alive = 0;
  static constexpr std::uintptr_t ended = 1;
  static constexpr std::uintptr_t detached = 2;
  static constexpr std::uintptr_t joined_from_outside = 3;
  std::atomic<std::uintptr_t> ending{alive};

  scheduler* home = nullptr;        // in whose workers' pools it lies
  std::size_t bytes;                // of the block with everything behind it; 0: not from a pool
  thread_extras* extras = nullptr;  // made when first needed, by the thread itself or its maker
  void (*destroy)(thread_block&) noexcept = nullptr;  // what it calls, after the call
};

// Blocks until it has ended, and frees it.
void join_thread(thread_block& b);
// It frees itself at its end.
void detach_thread(thread_block& b) noexcept;
// Frees what was never started, on the worker for which it was made.
void drop_thread(thread_block& b) noexcept;
// Hands it to the scheduler. In an `uninterrupted` section. Throws std::system_error where there is
// no stack for it, or no memory for one more that is ready.
void start_thread(thread_block& b);
// The same of one that has a stack, or is counted among those that will have one of the usual size.
void start_counted_thread(thread_block& b);
// What the body of a thread does: invoke(b) on its stack, then everything that comes with its end.
void run_thread(thread_block& b, void (*invoke)(thread_block&));
// The block of the calling task, made now if it has none. Throws misuse_error in a fiber.
thread_block* current_block();
// The same, null where there is none.
thread_block* current_block_if_any() noexcept;
// By who is outside: calls f(argument) in the runtime that the process has for its threads, which
// is started if need be. Blocks the OS thread meanwhile; rethrows what f throws.
void call_in_process_runtime(void (*f)(void*), void* argument);
// Throws std::system_error (resource_unavailable_try_again).
[[noreturn]] void refuse_for_memory();
// Before it is started. Throws std::system_error for a size that cannot be, and where there is no
// OS thread or memory for what they ask for.
void set_attributes(thread_block& b, const thread_attributes& a);

extern const task_type sized_thread;

}  // namespace detail
}  // namespace strata
