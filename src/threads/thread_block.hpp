// SPDX-License-Identifier: Apache-2.0
// The rarely used half of a thread.
#pragma once
#include <atomic>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "strata/detail/parking.hpp"
#include "strata/detail/thread_block.hpp"
#include "sync/spin_lock.hpp"
#include "threads/specifics.hpp"
#include "threads/waiter.hpp"

namespace strata::detail {

struct thread_extras {
  std::string name;
  std::size_t stack_bytes = 0;
  stack* own_stack = nullptr;  // of that size, until it begins
  bool preemptible = false;
  place* pinned_to = nullptr;
  int priority = 0;
  void (*body)(task&) = nullptr;  // of a thread whose stack has a size of its own
  std::map<const void*, specific_value> specifics;
  std::vector<exit_call> at_exit;

  // Interruption (cancellation, stop requests): by another thread, at any time.
  spin_lock lock;
  waiter* parked = nullptr;
  std::atomic<bool> interrupted{false};  // changed with the lock

  // ---- of the threads of pthread.h ----
  // A wait of whatever kind has ended by interruption, or because of signals: may not return. Null:
  // only interruptible waits can end so.
  void (*at_wake)(thread_block&, unparked why) = nullptr;
  std::atomic<bool> signalled{false};  // changed with the lock
  std::atomic<bool> heeds_all{false};  // interruption ends waits that are not interruptible, too
};

[[noreturn]] void refuse_thread(std::errc code, const char* what);

// As task_type::run of threads whose stack has a size of its own: it is extras->own_stack.
void run_on_own_stack(task& t, worker& w);

// For a thread that may have a smaller stack than usual: 8 MiB, 1 MiB or 256 KiB, the largest of
// these that there is. Null: there is none.
stack* take_smaller_stack(scheduler& home) noexcept;

// With the thread itself as the caller; made when missing.
thread_extras& extras_of(thread_block& b);

// Of a thread from outside: what can interrupt its waits; null: nothing.
extern thread_local constinit thread_block* outside_block;

// Makes w what interruptions and signals end; not `woken` when one has come before: then the caller
// does not wait.
unparked begin_wait(thread_block& b, waiter& w) noexcept;
void end_wait(thread_block& b) noexcept;
// The same for w, by who ends its runtime. Who has ended the wait before has made w's stack ready.
void forget_wait(waiter& w) noexcept;
// Ends the interruptible wait that b is in, and all later ones until it is cleared.
void interrupt(thread_block& b) noexcept;

}  // namespace strata::detail
