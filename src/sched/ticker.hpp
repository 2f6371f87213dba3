// SPDX-License-Identifier: Apache-2.0
// Preemption of threads that ask for it. (Requirement L8.)
//
// While such threads exist, a thread of its own looks at every worker once per interval. A worker
// that has run the same preemptible thread since the last look, while others wait there, gets a
// signal. Its handler gives up the interrupted stack, registers and all, as if the thread had
// called yield().
//
// When is that safe? The handler does so only if the interrupted instruction belongs to the program
// itself: not to a shared library, so nobody holds a lock of malloc or of stdio there; and not to a
// section of the runtime, all of which are marked (class uninterrupted). Where malloc itself or the
// C++ library is part of the program nobody is interrupted (is_safe()). While the handler looks,
// further ticks have to wait: to them the handler itself would be the interrupted code. An
// interrupted thread
// goes on on the same worker, because a compiler may hold the address of a thread_local variable
// anywhere. That is the same OS thread, with one exception: who calls run() is in a worker's place
// until that returns, and what it leaves behind goes on on the worker's own OS thread. Then the
// signal mask and the signal stack are those of that one, but an address of a thread_local variable
// that is held stays the other's.
// Source of the method, signals that yield in user space, and of its limits: S. Shiina, S. Iwasaki,
// K. Taura, P. Balaji, "Lightweight preemptive user-level threads", 2021
// (doi:10.1145/3437801.3441610).
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "os/futex.hpp"

namespace strata::detail {

class scheduler;

class ticker {
 public:
  ticker(scheduler& s, std::int64_t interval_ns) : scheduler_(s), interval_ns_(interval_ns) {}
  ~ticker() { stop(); }

  // Whether threads of this program can be interrupted at all. Not where the allocator, or the C++
  // library with its locks (of locales, for one), is the program's own, as in static executables,
  // with -static-libstdc++, and with a sanitizer's runtime linked in: what those do cannot be told
  // from what the program does. And not with ThreadSanitizer, which delivers signals when it likes.
  [[nodiscard]] static bool is_safe() noexcept;

  ticker(const ticker&) = delete;
  ticker& operator=(const ticker&) = delete;

  // Before a preemptible thread is made, where a refusal can be told. Throws std::system_error
  // where there is no OS thread for the ticks, std::bad_alloc.
  void prepare();
  // A preemptible thread begins, and ends. The first starts the ticking, with the last it stops.
  void begin() noexcept {
    if (alive_.fetch_add(1, std::memory_order_release) == 0) os::futex_wake(alive_, 1);
  }
  void end() noexcept { alive_.fetch_sub(1, std::memory_order_release); }
  // When no thread exists any more: it looks at no worker afterwards.
  void stop();

 private:
  void run();

  scheduler& scheduler_;
  const std::int64_t interval_ns_;
  std::mutex mutex_;
  std::thread thread_;  // made with the lock
  os::futex_word alive_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace strata::detail
