// SPDX-License-Identifier: Apache-2.0
// The standard's mutexes for threads of strata/thread.hpp. One word each; free, it costs one locked
// instruction to lock and one to unlock. Whoever does not get it is suspended, and its worker does
// other work. Threads from outside a runtime may use them too, and block. Not for fibers: locking
// one that is held throws misuse_error there.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <shared_mutex>

#include "strata/detail/deadline.hpp"
#include "strata/detail/thread_core.hpp"
#include "strata/detail/use_check.hpp"
#include "strata/detail/word_lock.hpp"

namespace strata {

class condition_variable;

/// std::mutex. Who unlocks it must be who has locked it, and nobody may have it or wait for it when
/// it is destroyed: the standard leaves the rest undefined, and Debug and sanitizer builds end the
/// program with a line that says so. All locks below are alike in that.
class mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
#if defined(STRATA_DEBUG_CHECKS)
  ~mutex() { word_.check_unused("mutex"); }
#endif
  /// Suspends the caller until it has the lock; what was done before the unlock() is visible then.
  /// Throws misuse_error in a fiber if it would have to wait.
  void lock() {
    word_.lock();
    owner_.take();
  }
  /// Never blocks; true if the caller has it now.
  bool try_lock() noexcept { return got(word_.try_lock()); }
  /// Never blocks.
  void unlock() noexcept {
    owner_.leave("mutex", this);
    word_.unlock();
  }

 protected:
  friend class condition_variable;
  bool got(bool locked) noexcept {
    if (locked) owner_.take();
    return locked;
  }
  detail::word_lock word_;
  [[no_unique_address]] detail::lock_owner owner_;
};

/// std::timed_mutex. Waiting until a time throws std::system_error or std::bad_alloc, here and in
/// the other timed locks, where there is no thread or memory for a deadline; then the caller does
/// not have the lock.
class timed_mutex : public mutex {
 public:
  /// Suspends the caller for that long at most; false if it does not have the lock then.
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& time) {
    return got(word_.lock_until(detail::deadline_after(time)));
  }
  /// The same until `time` at the latest.
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& time) {
    return got(
        detail::attempt_until(time, [this](std::int64_t ns) { return word_.lock_until(ns); }));
  }
};

/// std::recursive_mutex. Its owner may lock it 2^32 - 1 times.
class recursive_mutex {
 public:
  constexpr recursive_mutex() noexcept = default;
  recursive_mutex(const recursive_mutex&) = delete;
  recursive_mutex& operator=(const recursive_mutex&) = delete;
#if defined(STRATA_DEBUG_CHECKS)
  ~recursive_mutex() { word_.check_unused("recursive mutex"); }
#endif
  /// As that of mutex. Throws std::system_error (resource_unavailable_try_again) when the caller
  /// has locked it that often.
  void lock() {
    if (!is_mine()) {
      enter(word_.lock_until(detail::parking::never));
    } else if (!deepen()) {
      refuse_depth();
    }
  }
  /// Never blocks; true if the caller has it once more now.
  bool try_lock() noexcept { return is_mine() ? deepen() : enter(word_.try_lock()); }
  /// Never blocks. Free after as many as there were locks.
  void unlock() noexcept {
    if constexpr (detail::uses_are_checked) check_mine();
    if (--depth_ != 0) return;
    owner_.store({}, std::memory_order_relaxed);
    word_.unlock();
  }

 protected:
  // Only the owner finds itself here, so no order is needed.
  [[nodiscard]] bool is_mine() const noexcept {
    return owner_.load(std::memory_order_relaxed) == this_thread::get_id();
  }
  bool deepen() noexcept {
    if (depth_ == UINT32_MAX) return false;
    ++depth_;
    return true;
  }
  [[noreturn]] static void refuse_depth();
  void check_mine() const noexcept {
    detail::check_use(is_mine(), "recursive mutex", this, "is unlocked by a thread that has it not",
                      "unlock it as often as it was locked, in the same thread");
  }
  bool enter(bool locked) noexcept {
    if (!locked) return false;
    owner_.store(this_thread::get_id(), std::memory_order_relaxed);
    depth_ = 1;
    return true;
  }
  detail::word_lock word_;
  std::atomic<thread::id> owner_{};
  std::uint32_t depth_ = 0;
};

/// std::recursive_timed_mutex.
class recursive_timed_mutex : public recursive_mutex {
 public:
  /// As that of timed_mutex; at once true for the owner, unless it has locked it 2^32 - 1 times.
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& time) {
    return is_mine() ? deepen() : enter(word_.lock_until(detail::deadline_after(time)));
  }
  /// The same until `time` at the latest.
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& time) {
    return is_mine() ? deepen() : enter(detail::attempt_until(time, [this](std::int64_t ns) {
      return word_.lock_until(ns);
    }));
  }
};

/// std::shared_timed_mutex. A writer that waits holds back readers that come later, and a writer
/// that leaves lets in all readers that wait, so neither side starves the other. (A thread that
/// holds it shared must not lock it shared again, as in the standard.)
class shared_timed_mutex {
 public:
  constexpr shared_timed_mutex() noexcept = default;
  shared_timed_mutex(const shared_timed_mutex&) = delete;
  shared_timed_mutex& operator=(const shared_timed_mutex&) = delete;
#if defined(STRATA_DEBUG_CHECKS)
  ~shared_timed_mutex();
#endif

  /// For a writer: suspends the caller until nobody else has it; what all who had it did before
  /// they unlocked is visible then. Throws misuse_error in a fiber if it would have to wait. Where
  /// a writer was woken and others were quicker, others have a turn before the caller takes it.
  void lock() { (void)lock_until(detail::parking::never); }
  /// For a writer. Never blocks; true if the caller has it now.
  bool try_lock() noexcept;
  /// By the writer that has it. Never blocks.
  void unlock() noexcept;
  /// For a reader: suspends the caller while a writer has it or waits for it; what writers did
  /// before is visible then. Throws misuse_error in a fiber if it would have to wait.
  void lock_shared() { (void)lock_shared_until(detail::parking::never); }
  /// For a reader. Never blocks; true if the caller has it now, false also where a writer waits.
  bool try_lock_shared() noexcept;
  /// By a reader that has it. Never blocks.
  void unlock_shared() noexcept;

  /// lock() for that long at most; false if the caller does not have it then. Throws as
  /// timed_mutex.
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& time) {
    return lock_until(detail::deadline_after(time));
  }
  /// The same until `time` at the latest.
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& time) {
    return detail::attempt_until(time, [this](std::int64_t ns) { return lock_until(ns); });
  }
  /// lock_shared() for that long at most; false if the caller does not have it then. Throws as
  /// timed_mutex.
  template <class Rep, class Period>
  bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& time) {
    return lock_shared_until(detail::deadline_after(time));
  }
  /// The same until `time` at the latest.
  template <class Clock, class Duration>
  bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& time) {
    return detail::attempt_until(time, [this](std::int64_t ns) { return lock_shared_until(ns); });
  }

 private:
  static constexpr std::uint32_t writer = 1U << 31;        // one has it
  static constexpr std::uint32_t writers_wait = 1U << 30;  // some are parked at &state_
  static constexpr std::uint32_t readers_wait = 1U << 29;  // some are parked at readers_at()
  // A writer waits that was woken in vain; the next one that comes takes it back.
  static constexpr std::uint32_t hungry = 1U << 28;
  static constexpr std::uint32_t readers = hungry - 1;  // how many have it
  // While those who waited are let in, so many more than there are.
  static constexpr std::uint32_t admitting = 1U << 24;

  // With a deadline on the monotonic clock, in nanoseconds. Suspend; false: it is over.
  bool lock_until(std::int64_t deadline_ns);
  bool lock_shared_until(std::int64_t deadline_ns);
  bool try_write(std::uint32_t marks) noexcept;
  void let_hungry_first() noexcept;
  bool try_admit_readers(std::uint32_t& seen, std::uint32_t next) noexcept;
  void wake_a_writer() noexcept;
  void forget_writers() noexcept;
  static bool writer_must_wait(void* self);
  static bool writer_must_wait_again(void* self);
  static void writer_gives_up(void* self) noexcept;
  static bool reader_must_wait(void* self);
  // Odd: who is woken there has the lock. Others may be late in waking somebody at an address that
  // was an object of theirs and is part of a lock now, but all of those are even but a mutex's
  // gate, which is never used late.
  [[nodiscard]] const void* readers_at() const noexcept {
    return reinterpret_cast<const char*>(&readers_) + 1;
  }
  static void no_writer_waits(void* self);

  std::atomic<std::uint32_t> state_{0};
  std::uint32_t readers_ = 0;                       // somewhere in it is their address
  [[no_unique_address]] detail::lock_owner owner_;  // the writer
};

/// std::shared_mutex: shared_timed_mutex without deadlines.
class shared_mutex : private shared_timed_mutex {
 public:
  using shared_timed_mutex::lock;
  using shared_timed_mutex::lock_shared;
  using shared_timed_mutex::try_lock;
  using shared_timed_mutex::try_lock_shared;
  using shared_timed_mutex::unlock;
  using shared_timed_mutex::unlock_shared;
  constexpr shared_mutex() noexcept = default;
};

/// std::once_flag and std::call_once: the others wait, suspended.
class once_flag {
 public:
  constexpr once_flag() noexcept = default;
  once_flag(const once_flag&) = delete;
  once_flag& operator=(const once_flag&) = delete;

 private:
  template <class F, class... Args>
  friend void call_once(once_flag& flag, F&& f, Args&&... args);
  // True: the caller is to make the call.
  bool begin();
  void end(bool done) noexcept;
  static bool in_progress(void* self);
  static constexpr std::uint32_t nothing = 0, running = 1, done_ = 2;
  std::atomic<std::uint32_t> state_{nothing};
};

/// Calls f(args...) unless a call with this flag has returned. Suspends the caller while another is
/// in progress; what the call did is visible afterwards. Rethrows what f throws, and the next
/// caller tries again. Throws misuse_error in a fiber if it would have to wait.
template <class F, class... Args>
void call_once(once_flag& flag, F&& f, Args&&... args) {
  // Acquire: what the call did. Partner: end().
  if (flag.state_.load(std::memory_order_acquire) == once_flag::done_) [[likely]]
    return;
  if (!flag.begin()) return;
  try {
    std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
  } catch (...) {
    flag.end(false);  // the next one tries
    throw;
  }
  flag.end(true);
}

using std::adopt_lock;
using std::adopt_lock_t;
using std::defer_lock;
using std::defer_lock_t;
using std::lock;
using std::lock_guard;
using std::scoped_lock;
using std::shared_lock;
using std::try_lock;
using std::try_to_lock;
using std::try_to_lock_t;
using std::unique_lock;

}  // namespace strata
