// SPDX-License-Identifier: Apache-2.0
// What POSIX knows of one thread. Records are never freed, only used again, and a pthread_t is the
// number of a record together with how often it was used: one that has ended is told from one that
// lives, and a late call touches nothing that is not ours.
#pragma once
#include <pthread.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/pthread.h"
#include "threads/thread_block.hpp"

namespace strata::detail::posix {

struct key_value {
  void* value;
  std::uint32_t use;  // of the key's number, see keys.cpp
};
inline constexpr std::size_t keys_per_part = 32;
using key_part = std::array<key_value, keys_per_part>;

struct record : thread_block {
  record(std::uint32_t number) noexcept;

  // ---- life ----
  static constexpr std::uint32_t ended = 1;
  static constexpr std::uint32_t detached = 2;
  static constexpr std::uint32_t joining = 4;
  std::atomic<std::uint32_t> life{0};
  const std::uint32_t index;
  std::atomic<std::uint32_t> use{1};  // changed with more.lock
  record* next_free = nullptr;

  // ---- what it runs ----
  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  std::size_t asked_bytes = 0;  // of stack, as the attributes had it
  // Told to who asks, and without effect.
  std::atomic<int> policy{SCHED_OTHER};
  std::atomic<int> priority{0};
  // Whose interruption ends its waits: itself, or the thread of strata/thread.hpp that it is about.
  thread_block* body = this;
  bool counted = false;          // made by pthread_create
  unsigned waits_in_kernel = 0;  // calls that it is in and that must not suspend it; by itself
  bool is_os_thread = false;
  pthread_t os_thread{};  // of a thread from outside

  // ---- the way out; by the thread itself ----
  std::atomic<bool> may_be_cancelled{true};
  int cancel_type = PTHREAD_CANCEL_DEFERRED;
  bool leaving = false;
  std::jmp_buf* base = nullptr;        // in the frame where unwinding ends
  strata_cleanup* handlers = nullptr;  // newest first
  void* unwind_buffer = nullptr;       // the newest of the C library's kind
  _Unwind_Exception unwinding{};

  // ---- values of keys ----
  std::array<std::unique_ptr<key_part>, PTHREAD_KEYS_MAX / keys_per_part> keys;
  bool has_values = false;

  // ---- signals; with more.lock ----
  sigset_t blocked{};
  sigset_t pending{};
  std::vector<std::pair<int, sigval>> pending_values;  // of pthread_sigqueue()
  sigset_t opened{};  // counted by the taker of signals, see signals.cpp
  bool opened_any = false;
  bool is_main = false;           // runs main(), under the command
  bool restarts = false;          // the handlers that ran last had SA_RESTART; by the thread itself
  bool waits_for_signal = false;  // for one of `awaited`, in sigwait()
  pthread_t signal_waiter{};      // the OS thread that does it for us
  sigset_t awaited{};
  sigset_t forwarded{};  // to that OS thread

  // ---- its name ----
  // The same as more.name, once it has one, for those who look at any time and take no lock.
  static constexpr std::size_t name_bytes_max = 16;  // with the final zero, as the kernel has it
  std::array<char, name_bytes_max> title{};

  thread_extras more;
};

// By who has made it, or with r.more.lock.
void set_title(record& r, std::string_view title) noexcept;

// A fresh one that belongs to nobody else. Null without memory.
record* take_record() noexcept;
// Gives it up: its pthread_t is no longer valid.
void give_record(record& r) noexcept;
[[nodiscard]] pthread_t handle_of(const record& r) noexcept;
// Whether t is one of ours at all, or the C library's.
[[nodiscard]] bool is_ours(pthread_t t) noexcept;
// Null when there is no such thread any more.
[[nodiscard]] record* find_record(pthread_t t) noexcept;
// With r.more.lock: it still is the thread that t was.
[[nodiscard]] bool is_still(const record& r, pthread_t t) noexcept;

// The calling thread's, made now if it has none; the same, null where there is none.
record& self();
[[nodiscard]] record* self_if_any() noexcept;

// The last thing of a thread's life: tells who joins it.
void end_record(record& r) noexcept;

// The destructors of its keys' values.
void end_keys(record& r);
// And of the values that C++ threads have. Those of one kind may leave some of the other; what is
// there after the last round is forgotten, as in POSIX.
void end_values(record& r);

// Runs the handlers of the signals that it has been sent and has not blocked. By the thread itself.
void deliver_signals(record& r);
// The same for those that `mask` lets in, as if it were the thread's; and whether there are any.
void deliver_signals_with(record& r, const sigset_t& mask);
[[nodiscard]] bool has_signals_beyond(record& r, const sigset_t& mask) noexcept;
// The calling thread has written to where nobody reads any more, and the kernel has told its worker
// so by SIGPIPE: it is the thread's. errno stays as it is.
void take_broken_pipe();
// Of a thread that has not begun: what it inherits as unblocked, the process's signals reach.
void inherit_signals(record& r, const record& parent);
// It ends, and takes no more signals.
void end_signals(record& r) noexcept;
// Whether a cancellation that is allowed now comes at once; tells who may interrupt its waits.
void update_asynchronous(record& r) noexcept;

// ---- over a fork ----
void hold_records() noexcept;
void release_records() noexcept;
[[nodiscard]] bool are_there_records() noexcept;
void hold_keys() noexcept;
void release_keys() noexcept;
// In the child.
// Other threads held them when they ceased to be.
void free_record_locks() noexcept;
void forget_other_threads() noexcept;
void forget_running_once() noexcept;
void forget_signal_taker() noexcept;
// The caller has no worker any more: it is a thread from outside, with all that it had.
void become_outside(record& r) noexcept;

// Threads made by strata_pthread_create() that have not ended.
extern std::atomic<std::uint32_t> living;
void wait_until_alone();

}  // namespace strata::detail::posix
