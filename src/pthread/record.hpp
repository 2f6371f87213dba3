// SPDX-License-Identifier: Apache-2.0
// What POSIX knows of one thread. Records are never freed, only used again, and a pthread_t is the
// number of a record together with how often it was used: one that has ended is told from one that
// lives, and a late call touches nothing that is not ours.
#pragma once
#include <pthread.h>
#include <signal.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "context/floating_point.hpp"
#include "os/futex.hpp"
#include "pthread/pending_signals.hpp"
#include "strata/pthread.h"
#include "threads/thread_block.hpp"

namespace strata::detail {
struct stack;
}

namespace strata::detail::posix {

struct key_value {
  void* value;
  std::uint32_t use;  // of the key's number, see keys.cpp
};
inline constexpr std::size_t keys_per_part = 32;
using key_part = std::array<key_value, keys_per_part>;

// The taker of signals waits for somebody to take one.
struct signal_offer {
  int number;
  bool taken;
  bool declined;  // it is to go to another thread
};

using processors = std::vector<std::byte>;  // as cpu_set_t has them

inline constexpr unsigned record_index_bits = 22;
inline constexpr std::uint32_t records_at_once = 256;  // are made

struct record : thread_block {
  record(std::uint32_t number) noexcept;

  // ---- life ----
  static constexpr std::uint32_t ended = 1;
  static constexpr std::uint32_t detached = 2;
  static constexpr std::uint32_t joining = 4;
  std::atomic<std::uint32_t> life{ended};
  const std::uint32_t index;
  std::atomic<std::uint32_t> use{1};  // changed with more.lock
  record* next_free = nullptr;

  // ---- what it runs ----
  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  std::size_t asked_bytes = 0;       // of stack, as the attributes had it
  std::byte* given_stack = nullptr;  // so many bytes of the program's, if it has given any
  // Told to who asks, and without effect, both.
  std::size_t guard_bytes = 0;
  bool inherits_scheduling = true;
  // What it runs on, for others who ask; null before and after. Release, with what the stack says
  // of itself. Partner: strata_pthread_getattr_np().
  std::atomic<const stack*> runs_on{nullptr};
  // Whom it joins; written by itself, and read by who would join it. Partner: join().
  std::atomic<const record*> joins{nullptr};
  // Its cancellation ends that; stored before. Relaxed: who sees whom it joins sees this.
  std::atomic<bool> joins_till_cancelled{false};
  floating_point floating_point_of_maker{};
  // Told to who asks, and without effect.
  std::atomic<int> policy{SCHED_OTHER};
  std::atomic<int> priority{0};
  // The processors that it has asked for, and null; changed with more.lock, see affinity.cpp.
  std::shared_ptr<const processors> affinity;
  // Relaxed, both: of what the thread itself or its maker has written before.
  std::atomic<bool> has_affinity{false};
  std::atomic<pid_t> affinity_ignored_in{0};  // the child of its vfork() that has set another
  // Whose interruption ends its waits: itself, or the thread of strata/thread.hpp that it is about.
  thread_block* body = this;
  bool counted = false;  // made by pthread_create
  // By itself: what keeps it from giving way, see preload/ticks.hpp.
  unsigned waits_in_kernel = 0;      // calls that it is in and that must not suspend it
  unsigned streams_held = 0;         // by flockfile(): locks of the OS thread that it is on
  std::uintptr_t handler_frame = 0;  // of the outermost handler that it is in; 0: none
  bool is_os_thread = false;
  pthread_t os_thread{};  // of a thread from outside
  // It ends as the C library's threads do, which keeps its cleanup handlers, too: see exit.cpp. Not
  // the process's first one, unless another thread's fork has made it that.
  bool leaves_natively = false;

  // ---- the way out; by the thread itself ----
  std::atomic<bool> may_be_cancelled{true};
  int cancel_type = PTHREAD_CANCEL_DEFERRED;
  bool leaving = false;
  os::futex_word times_cancelled{0};   // of a thread from outside: what it sleeps on
  std::jmp_buf* base = nullptr;        // in the frame where unwinding ends
  strata_cleanup* handlers = nullptr;  // newest first
  void* unwind_buffer = nullptr;       // the newest of the C library's kind
  _Unwind_Exception unwinding{};

  // ---- values of keys ----
  std::array<std::unique_ptr<key_part>, PTHREAD_KEYS_MAX / keys_per_part> keys;
  bool has_values = false;

  // ---- the condition variable that it last waited for, if its time passed; by the thread itself
  const void* given_up = nullptr;
  std::uint64_t came_to_it = 0;  // see parking::came

  // ---- the robust mutexes that it has; by the thread itself ----
  std::vector<pthread_mutex_t*> robust_held;

  // ---- signals; with more.lock ----
  sigset_t blocked{};
  // The same but for what is blocked, or not, only as long as a handler or a wait with a mask
  // lasts: what the kernel's masks and `opened` are made from.
  sigset_t blocked_by_program{};
  pending_signals pending;
  sigset_t opened{};  // counted for the taker of signals, see opened_counts.hpp
  bool opened_any = false;
  signal_offer* offer = nullptr;  // one of `pending`
  // What the kernel has blocked for the handlers that have interrupted main(), as bits; changed by
  // main() itself. Taken back late where a handler has left by siglongjmp(), see
  // end_left_handlers(); on the process's thread the kernel's mask has the last word. Relaxed: the
  // taker sends a reminder where it finds one, which the kernel holds back as long as it is so.
  std::atomic<std::uint64_t> added_by_handlers{0};
  // The signals whose handlers it runs, as bits: those that end its waits, and those for which the
  // kernel has interrupted main(). The same of siglongjmp(): then main() is reminded of what it
  // could have been offered. Changed by the thread itself, and set with more.lock where the kernel
  // has not called it. Partners: will_handle() in signal_offers.cpp, call_on_main() in
  // preload/handler_calls.cpp.
  std::atomic<std::uint64_t> running_handlers{0};
  // It runs a handler within a section of the runtime, where none interrupts main(), and looks for
  // what is pending when that ends. Relaxed: by the thread itself, and by what the kernel calls on
  // top of it.
  std::atomic<bool> handles_in_section{false};
  // Where on its stack the outermost handler begins that it runs: whatever that calls lies below.
  // 0: it runs none. By the thread itself, see end_left_handlers().
  std::uintptr_t handlers_below = 0;
  // Of those two what was there before.
  std::uint64_t added_above = 0;
  std::uint64_t running_above = 0;
  // A handler runs for it on the taker's OS thread; changed with more.lock. Partner:
  // deliver_signals().
  std::atomic<bool> handled_elsewhere{false};
  // What that handler blocks, and its own signal, as bits; stored before.
  std::atomic<std::uint64_t> blocked_elsewhere{0};
  bool ends_by_elsewhere = false;  // one has run there that had no SA_RESTART
  // Handlers that have run for it. Relaxed: who waits in its place looks whether there is another.
  std::atomic<std::uint32_t> handlers_run{0};
  bool is_main = false;           // runs main(), under the command
  bool restarts = false;          // the handlers that ran last had SA_RESTART; by the thread itself
  bool awaits_handler = false;    // in sigsuspend() or pause()
  bool waits_for_signal = false;  // for one of `awaited`, in sigwait()
  pthread_t signal_waiter{};      // the OS thread that does it for us
  sigset_t awaited{};
  sigset_t forwarded{};  // to that OS thread

  // ---- its name ----
  // The same as more.name, once it has one, for those who look at any time and take no lock. An
  // empty one says that it has one of its own, which is empty: before there is kind_pthread().
  static constexpr std::size_t name_bytes_max = 16;  // with the final zero, as the kernel has it
  std::array<char, name_bytes_max> title{};

  thread_extras more;
};

// What one without a name is called. For debuggers, which cannot call it, the symbol says the same:
// see tools/gdb/strata-gdb.py.
const char* kind_pthread();

// By who has made it, or with r.more.lock.
void set_title(record& r, std::string_view title) noexcept;

// A fresh one that belongs to nobody else. Null without memory.
record* take_record() noexcept;
// Gives it up: its pthread_t is no longer valid. It is used again unless it is main()'s.
void give_record(record& r) noexcept;
[[nodiscard]] pthread_t handle_of(const record& r) noexcept;
// Whether t is one of ours at all, or the C library's.
[[nodiscard]] bool is_ours(pthread_t t) noexcept;
// Null when there is no such thread any more.
[[nodiscard]] record* find_record(pthread_t t) noexcept;
// The first for which wants(r, argument) is true, of all that there have been; null: none.
[[nodiscard]] record* first_record(bool (*wants)(record&, void*), void* argument) noexcept;
// With r.more.lock: it still is the thread that t was.
[[nodiscard]] bool is_still(const record& r, pthread_t t) noexcept;

// The calling thread's, made now if it has none; the same, null where there is none.
record& self();
[[nodiscard]] record* self_if_any() noexcept;

// The last thing of a thread's life: tells who joins it. From then on r may be another thread's,
// but for that of main().
void end_record(record& r) noexcept;
// Before that, by a thread without a worker, which goes on: r is its record no longer.
void leave_outside_record(const record& r) noexcept;
// The calling thread, which has no worker, has its end seen when the C library ends it, with a
// record or without one. False: there is no memory for that.
[[nodiscard]] bool watch_outside_end() noexcept;

// The destructors of its keys' values.
void end_keys(record& r);
// And of the values that C++ threads have. Those of one kind may leave some of the other; what is
// there after the last round is forgotten, as in POSIX.
void end_values(record& r);

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
void forget_other_threads(record& mine) noexcept;
void forget_running_once() noexcept;
// The caller has no worker any more: it is a thread from outside, with all that it had.
void become_outside(record& r) noexcept;

// Threads made by strata_pthread_create() that have not ended.
extern std::atomic<std::uint32_t> living;
// For these, and for those of the program that are the C library's.
void wait_until_alone();

}  // namespace strata::detail::posix
