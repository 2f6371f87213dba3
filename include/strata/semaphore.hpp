// SPDX-License-Identifier: Apache-2.0
// The standard's semaphores, latches and barriers for threads of strata/thread.hpp. Waiting
// suspends the thread; releasing and counting down never block and are allowed from fibers and from
// threads outside a runtime.
//
// Debug and sanitizer builds end the program for what the standard leaves undefined: a count beyond
// its bounds, and the end of an object that somebody waits for.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "strata/detail/barrier_core.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/detail/parking.hpp"
#include "strata/detail/thread_core.hpp"
#include "strata/detail/use_check.hpp"

namespace strata {

namespace detail {

class semaphore_core {
 public:
  explicit constexpr semaphore_core(std::uint64_t count) noexcept : state_(count) {}
  bool try_acquire() noexcept {
    std::uint64_t s = state_.load(std::memory_order_relaxed);
    while ((s & ~marks) != 0) {
      // Acquire: after the release that made it possible. Partner: release().
      if (state_.compare_exchange_weak(s, s - 1, std::memory_order_acquire,
                                       std::memory_order_relaxed))
        return true;
    }
    return false;
  }
  // `woken` when acquired, or `timed_out`.
  unparked acquire(std::int64_t deadline_ns) {
    let_hungry_first();
    return try_acquire() ? unparked::woken : wait(deadline_ns);
  }
  // Before who may wait tries for the first time: where somebody was woken in vain others have
  // their turn. A thread that acquires again at once what it has released would else keep everybody
  // out who shares its worker.
  void let_hungry_first() noexcept {
    if ((state_.load(std::memory_order_relaxed) & hungry) != 0) [[unlikely]]
      give_way();
  }
  // The same; waits once by wait_once(), which may throw.
  unparked acquire_by(unparked (*wait_once)(const parking&), std::int64_t deadline_ns);
  // Waits once, until there may be something to acquire, or for what else `how` names. in_vain: by
  // who has waited before, and has got nothing.
  unparked park_here(parking how, bool in_vain);
  void release(std::uint64_t n) noexcept { (void)release_and_count(n); }
  // Returns the count before.
  std::uint64_t release_and_count(std::uint64_t n) noexcept {
    // The last access: whoever gets through may end the semaphore.
    const std::uint64_t before = state_.fetch_add(n, std::memory_order_release);
    if ((before & awaited) != 0) [[unlikely]]
      wake(this, n);
    return before & ~marks;
  }
  // release() for who may be mistaken. False, and nothing has changed, where there would be more
  // than `most` then.
  [[nodiscard]] bool try_release(std::uint64_t n, std::uint64_t most) noexcept;
  // release() in two steps, for who may not wake anybody yet: afterwards by the address alone.
  void release_unheard() noexcept { state_.fetch_add(1, std::memory_order_release); }
  static void wake(const void* address, std::uint64_t n) noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept {
    return state_.load(std::memory_order_relaxed) & ~marks;
  }

 private:
  // Somebody may be parked; set with the queue locked, and never taken back.
  static constexpr std::uint64_t awaited = std::uint64_t{1} << 63;
  // Somebody waits who was woken in vain; whoever comes next takes it back.
  static constexpr std::uint64_t hungry = std::uint64_t{1} << 62;
  static constexpr std::uint64_t marks = awaited | hungry;
  static bool must_wait(void* self);
  static bool must_wait_again(void* self);
  bool mark_while_empty(std::uint64_t mark) noexcept;
  void give_way() noexcept;
  unparked wait(std::int64_t deadline_ns);

  std::atomic<std::uint64_t> state_;
};

}  // namespace detail

/// std::counting_semaphore.
template <std::ptrdiff_t Most = PTRDIFF_MAX / 2>
class counting_semaphore {
  static_assert(Most <= PTRDIFF_MAX / 2, "a semaphore counts to 2^62 - 1 at most");

 public:
  /// 0 <= count <= max().
  explicit constexpr counting_semaphore(std::ptrdiff_t count) noexcept
      : core_(static_cast<std::uint64_t>(count)) {
    detail::check_use(static_cast<std::uint64_t>(count) <= static_cast<std::uint64_t>(Most),
                      "semaphore", this, "begins with a count out of range",
                      "begin with 0 to max()");
  }
  counting_semaphore(const counting_semaphore&) = delete;
  counting_semaphore& operator=(const counting_semaphore&) = delete;
#if defined(STRATA_DEBUG_CHECKS)
  ~counting_semaphore() { detail::check_end("semaphore", this, false, &core_); }
#endif
  /// The largest count.
  static constexpr std::ptrdiff_t max() noexcept { return Most; }
  /// Never blocks. n >= 0, and the count stays within max(). Whoever gets through sees what was
  /// done before, and may end the semaphore.
  void release(std::ptrdiff_t n = 1) noexcept {
    detail::check_use(n >= 0, "semaphore", this, "is released a negative number of times",
                      "release 0 or more");
    const auto more = static_cast<std::uint64_t>(n);
    const std::uint64_t before = core_.release_and_count(more);
    detail::check_use(before + more <= static_cast<std::uint64_t>(Most), "semaphore", this,
                      "is released beyond its max()", "count further: counting_semaphore<>");
  }
  /// Suspends the caller until it has one. Throws misuse_error in a fiber if it would have to wait.
  /// Where somebody was woken and others were quicker, others have a turn before the caller takes
  /// one.
  void acquire() { core_.acquire(detail::parking::never); }
  /// Never blocks.
  bool try_acquire() noexcept { return core_.try_acquire(); }
  /// Suspends the caller for that long at most; false if it has none then. Throws std::system_error
  /// or std::bad_alloc where there is no thread or memory for a deadline.
  template <class Rep, class Period>
  bool try_acquire_for(const std::chrono::duration<Rep, Period>& time) {
    return core_.acquire(detail::deadline_after(time)) == detail::unparked::woken;
  }
  /// The same until `time` at the latest.
  template <class Clock, class Duration>
  bool try_acquire_until(const std::chrono::time_point<Clock, Duration>& time) {
    return detail::attempt_until(
        time, [this](std::int64_t ns) { return core_.acquire(ns) == detail::unparked::woken; });
  }

 private:
  friend class semaphore_handle;
  detail::semaphore_core core_;
};
using binary_semaphore = counting_semaphore<1>;

/// std::latch.
class latch {
 public:
  /// count >= 0.
  explicit constexpr latch(std::ptrdiff_t count) noexcept : left_(count) {
    detail::check_use(count >= 0, "latch", this, "begins with a count below 0",
                      "give it the number of those who count down");
  }
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;
#if defined(STRATA_DEBUG_CHECKS)
  ~latch() { detail::check_end("latch", this, false, this); }
#endif
  /// The largest count.
  static constexpr std::ptrdiff_t max() noexcept { return PTRDIFF_MAX; }
  /// Never blocks. n is between 0 and what is left.
  void count_down(std::ptrdiff_t n = 1) noexcept;
  /// Never blocks; true once it is open.
  [[nodiscard]] bool try_wait() const noexcept {
    // Acquire: what was done before counting down. Partner: count_down().
    return left_.load(std::memory_order_acquire) == 0;
  }
  /// Suspends the caller until it is open; what was done before counting down is visible then.
  /// Throws misuse_error in a fiber if it would have to wait.
  void wait() const;
  /// Both.
  void arrive_and_wait(std::ptrdiff_t n = 1) {
    count_down(n);
    wait();
  }

 private:
  static bool is_up(void* self);
  std::atomic<std::ptrdiff_t> left_;
};

/// std::barrier.
template <class Completion = detail::no_completion>
class barrier {
 public:
  using arrival_token = detail::barrier_core::phase_token;

  /// For `count` arrivals in each phase; the last one calls at_end() before anybody goes on. Throws
  /// std::system_error (invalid_argument) unless 0 <= count <= max(), std::bad_alloc. One that is
  /// made outside a runtime costs more for each arrival.
  constexpr explicit barrier(std::ptrdiff_t count, Completion at_end = Completion())
      : at_end_(std::move(at_end)), core_(count, &complete, this) {}
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;
  /// The largest count.
  static constexpr std::ptrdiff_t max() noexcept { return detail::barrier_core::count_max; }
  /// Never blocks, but for at_end(). n is between 1 and what is missing in this phase.
  [[nodiscard]] arrival_token arrive(std::ptrdiff_t n = 1) { return core_.arrive(n); }
  /// Suspends the caller until the phase of the token has ended; what was done before its arrivals
  /// is visible then. Throws misuse_error in a fiber if it would have to wait.
  void wait(arrival_token&& phase) const { core_.wait(phase); }
  /// Both at once, and cheaper.
  void arrive_and_wait() { core_.arrive_and_wait(); }
  /// Arrives, and there is one less to come in each later phase.
  void arrive_and_drop() { core_.arrive_and_drop(); }

 private:
  friend class barrier_handle;
  static void complete(void* self) noexcept { static_cast<barrier*>(self)->at_end_(); }
  Completion at_end_;
  mutable detail::barrier_core core_;
};

}  // namespace strata
