// SPDX-License-Identifier: Apache-2.0
// The standard's condition variables for threads of strata/thread.hpp. Notifying costs a load until
// somebody has waited, and is allowed from fibers and from threads outside a runtime.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <type_traits>

#include "strata/detail/use_check.hpp"
#include "strata/detail/worker.hpp"
#include "strata/mutex.hpp"
#include "strata/stop_token.hpp"

namespace strata {

using std::cv_status;

namespace detail {

// What a wait knows of its stop token, of whatever kind, and of what a request calls meanwhile.
struct stop_question : parked_place {
  const void* token;
  bool (*requested)(const void* token) noexcept;
  void* callback;
  // In place of a waiter that goes no further: ends what a request would call.
  void (*forget)(void* callback) noexcept;
};

// The queue of those who wait; `unlock(lock)` is done once the caller can be notified.
class condition_queue {
 public:
  unparked wait(void (*unlock)(void*), void* lock, std::int64_t deadline_ns);
  void notify(unsigned count) noexcept;
  // Wakes who waits with that question, and never suspends the caller: std::stop_callback tells
  // threads apart by OS thread, so its callbacks must end on the one that they began on. Reads
  // nothing of the queue but its address.
  void notify_stopped(const stop_question* waits) noexcept { unpark_at(this, *waits); }

 protected:
  // Somebody may wait: so that notifying nobody is cheap. Aligned, because it is the address that
  // is unparked, perhaps late, and odd ones are the locks' own.
  alignas(4) std::atomic<bool> used_{false};
};

// For locks whose unlock() is the program's, and cannot be done where the caller is queued already:
// who waits does not if it was notified between the two. Nobody locks anything to notify, so fibers
// may.
class counted_condition_queue : public condition_queue {
 public:
  // With the lock held: what a later notification changes. Throws misuse_error in a fiber.
  [[nodiscard]] std::uint64_t begin_wait();
  // Returns at once after a notification or, with a token, if a stop has been requested. Throws
  // what park() throws for want of memory, or of a thread for a deadline.
  void wait_since(std::uint64_t begun, std::int64_t deadline_ns, stop_question* stop = nullptr);
  void notify(unsigned count) noexcept;

 private:
  static bool is_awaited(void* request);
  static void forget_callback(void* request) noexcept;
  std::atomic<std::uint64_t> notifications_{0};
};

struct stop_notifier {
  stop_notifier(condition_queue& q, const stop_question& w) noexcept : queue(&q), waits(&w) {}
  condition_queue* queue;
  const stop_question* waits;
  void operator()() const noexcept { queue->notify_stopped(waits); }
};

// While it lives, a request of `stop` wakes who waits in `queue` with that token, which is one of
// the C++ library.
//
// Its stop state has a spin lock, which its stop_callback takes to come and to go. A preemptible
// thread that a timer stopped with that lock in its hands goes on on the same worker only, where
// whoever wants the lock spins and lets nobody in. So no timer may come in between.
class wakes_when_standard_stopped {
 public:
  wakes_when_standard_stopped(const std::stop_token& stop, stop_notifier notifier) {
    const uninterrupted guard;
    std::construct_at(&callback_, stop, notifier);
  }
  // Afterwards nobody is in the callback, nor touches what the C++ library keeps of it here: it
  // waits for a request on another OS thread, and on this one nobody can be in the middle of a
  // request, which never suspends. Partners: notify_stopped(), stop_state::request().
  ~wakes_when_standard_stopped() {
    const uninterrupted guard;
    std::destroy_at(&callback_);
  }
  wakes_when_standard_stopped(const wakes_when_standard_stopped&) = delete;
  wakes_when_standard_stopped& operator=(const wakes_when_standard_stopped&) = delete;

 private:
  union {  // so that it comes and goes while the guards are there
    std::stop_callback<stop_notifier> callback_;
  };
};

template <class Token>
using wakes_when_stopped =
    std::conditional_t<std::is_same_v<Token, stop_token>, stop_callback<stop_notifier>,
                       wakes_when_standard_stopped>;

// One wait in `queue` that a request of `stop` ends. It lies on the waiter's stack and is only
// there while that waits in the queue: where the waiter goes no further the queue finds it.
template <any_stop_token Token>
class stoppable_wait {
 public:
  stoppable_wait(const Token& stop, condition_queue& queue)
      : question_{{}, &stop, &requested, &callback_, &forget},
        callback_(stop, stop_notifier(queue, question_)) {}
  stoppable_wait(const stoppable_wait&) = delete;
  stoppable_wait& operator=(const stoppable_wait&) = delete;
  [[nodiscard]] stop_question* question() noexcept { return &question_; }

 private:
  using callback = wakes_when_stopped<Token>;
  static bool requested(const void* token) noexcept {
    return static_cast<const Token*>(token)->stop_requested();
  }
  static void forget(void* its_callback) noexcept {
    std::destroy_at(static_cast<callback*>(its_callback));
  }
  stop_question question_;  // as long as who stops may be in the callback
  callback callback_;
};

}  // namespace detail

/// std::condition_variable. Nobody may wait for it when it is destroyed; who was notified may still
/// be about to leave. A wait suspends the caller, who has the lock when it returns, and sees what
/// was done with it held. In a fiber it throws misuse_error. With a time it throws
/// std::system_error or std::bad_alloc where there is no thread or memory for a deadline. Whatever
/// leaves a wait, the caller has the lock. Debug and sanitizer builds end the program for a wait
/// without the lock.
class condition_variable {
 public:
  condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;
#if defined(STRATA_DEBUG_CHECKS)
  ~condition_variable() { detail::check_end("condition variable", this, false, &queue_); }
#endif

  /// Never blocks, with the lock or without. A load where nobody has ever waited.
  void notify_one() noexcept { queue_.notify(1); }
  /// The same for all who wait.
  void notify_all() noexcept { queue_.notify(UINT32_MAX); }

  /// Suspends the caller until it is notified, or for no reason: look at what you wait for again.
  void wait(std::unique_lock<mutex>& lock) { wait_until_ns(lock, detail::parking::never); }
  /// Returns when holds(), which is called with the lock.
  template <class Predicate>
  void wait(std::unique_lock<mutex>& lock, Predicate holds) {
    while (!holds()) wait(lock);
  }
  /// The same until `time` at the latest; cv_status::timeout if that is over.
  template <class Clock, class Duration>
  cv_status wait_until(std::unique_lock<mutex>& lock,
                       const std::chrono::time_point<Clock, Duration>& time) {
    wait_until_ns(lock, detail::deadline_at(time));
    return detail::has_come(time) ? cv_status::timeout : cv_status::no_timeout;
  }
  /// Returns when holds(), or with what it says at `time`.
  template <class Clock, class Duration, class Predicate>
  bool wait_until(std::unique_lock<mutex>& lock,
                  const std::chrono::time_point<Clock, Duration>& time, Predicate holds) {
    while (!holds()) {
      if (wait_until(lock, time) == cv_status::timeout) return holds();
    }
    return true;
  }
  /// As wait_until(), with how long from now on.
  template <class Rep, class Period>
  cv_status wait_for(std::unique_lock<mutex>& lock,
                     const std::chrono::duration<Rep, Period>& time) {
    return timed_wait(lock, detail::deadline_after(time));
  }
  /// As wait_until(), with how long from now on.
  template <class Rep, class Period, class Predicate>
  bool wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& time,
                Predicate holds) {
    const std::int64_t deadline_ns = detail::deadline_after(time);
    while (!holds()) {
      if (timed_wait(lock, deadline_ns) == cv_status::timeout) return holds();
    }
    return true;
  }

 private:
  cv_status timed_wait(std::unique_lock<mutex>& lock, std::int64_t deadline_ns) {
    wait_until_ns(lock, deadline_ns);
    return detail::deadline_now() < deadline_ns ? cv_status::no_timeout : cv_status::timeout;
  }
  void wait_until_ns(std::unique_lock<mutex>& lock, std::int64_t deadline_ns) {
    detail::check_use(lock.owns_lock(), "condition variable", this, "is waited for without a lock",
                      "wait with a std::unique_lock that is locked");
    mutex* const m = lock.mutex();
    m->owner_.leave("mutex", m);
    m->word_.begin_unlock();
    try {
      // Not by m->unlock(), which is for the thread that waits.
      queue_.wait([](void* held) { static_cast<mutex*>(held)->word_.end_unlock(); }, m,
                  deadline_ns);
    } catch (const std::exception&) {
      m->word_.cancel_unlock();  // it could not wait, and has not unlocked
      m->owner_.take();
      throw;
    } catch (...) {
      m->lock();  // the thread is left here: see thread_exit.hpp
      throw;
    }
    try {
      m->lock();
    } catch (...) {
      m->lock();  // it is left while it locks
      throw;
    }
  }

  detail::condition_queue queue_;
};

/// std::notify_all_at_thread_exit: the calling thread keeps the lock until its end.
void notify_all_at_thread_exit(condition_variable& changed, std::unique_lock<mutex> lock);

/// std::condition_variable_any. As condition_variable; but a lock that cannot be had again ends the
/// program, as the standard has it: one whose lock() throws twice. What it throws once leaves the
/// wait, with the lock held, unless the thread is being left already.
class condition_variable_any {
 public:
  /// Throws std::bad_alloc.
  condition_variable_any() : queue_(std::make_shared<detail::counted_condition_queue>()) {}
  condition_variable_any(const condition_variable_any&) = delete;
  condition_variable_any& operator=(const condition_variable_any&) = delete;
#if defined(STRATA_DEBUG_CHECKS)
  ~condition_variable_any() { detail::check_end("condition variable", this, false, queue_.get()); }
#endif

  /// Never block, with the lock or without.
  void notify_one() noexcept { notify(1); }
  void notify_all() noexcept { notify(UINT32_MAX); }

  /// As those of condition_variable, with any lock that has lock() and unlock().
  template <class Lock>
  void wait(Lock& lock) {
    wait_until_ns(lock, detail::parking::never);
  }
  template <class Lock, class Predicate>
  void wait(Lock& lock, Predicate holds) {
    while (!holds()) wait(lock);
  }
  template <class Lock, class Clock, class Duration>
  cv_status wait_until(Lock& lock, const std::chrono::time_point<Clock, Duration>& time) {
    wait_until_ns(lock, detail::deadline_at(time));
    return detail::has_come(time) ? cv_status::timeout : cv_status::no_timeout;
  }
  template <class Lock, class Clock, class Duration, class Predicate>
  bool wait_until(Lock& lock, const std::chrono::time_point<Clock, Duration>& time,
                  Predicate holds) {
    while (!holds()) {
      if (wait_until(lock, time) == cv_status::timeout) return holds();
    }
    return true;
  }
  template <class Lock, class Rep, class Period>
  cv_status wait_for(Lock& lock, const std::chrono::duration<Rep, Period>& time) {
    return timed_wait(lock, detail::deadline_after(time));
  }
  template <class Lock, class Rep, class Period, class Predicate>
  bool wait_for(Lock& lock, const std::chrono::duration<Rep, Period>& time, Predicate holds) {
    const std::int64_t deadline_ns = detail::deadline_after(time);
    while (!holds()) {
      if (timed_wait(lock, deadline_ns) == cv_status::timeout) return holds();
    }
    return true;
  }

  /// Also returns when `stop`, a strata::stop_token or a std::stop_token, is requested; then what
  /// holds() says.
  template <class Lock, detail::any_stop_token Token, class Predicate>
  bool wait(Lock& lock, Token stop, Predicate holds) {
    while (!stop.stop_requested()) {
      if (holds()) return true;
      wait_until_ns(lock, detail::parking::never, stop);
    }
    return holds();
  }
  /// The same until `time` at the latest; then what holds() says.
  template <class Lock, detail::any_stop_token Token, class Clock, class Duration, class Predicate>
  bool wait_until(Lock& lock, Token stop, const std::chrono::time_point<Clock, Duration>& time,
                  Predicate holds) {
    while (!stop.stop_requested()) {
      if (holds()) return true;
      if (detail::has_come(time)) break;
      wait_until_ns(lock, detail::deadline_at(time), stop);
    }
    return holds();
  }
  /// The same, with how long from now on.
  template <class Lock, detail::any_stop_token Token, class Rep, class Period, class Predicate>
  bool wait_for(Lock& lock, Token stop, const std::chrono::duration<Rep, Period>& time,
                Predicate holds) {
    const std::int64_t deadline_ns = detail::deadline_after(time);
    while (!stop.stop_requested()) {
      if (holds()) return true;
      if (detail::deadline_now() >= deadline_ns) break;
      wait_until_ns(lock, deadline_ns, stop);
    }
    return holds();
  }

 private:
  template <class Lock>
  cv_status timed_wait(Lock& lock, std::int64_t deadline_ns) {
    wait_until_ns(lock, deadline_ns);
    return detail::deadline_now() < deadline_ns ? cv_status::no_timeout : cv_status::timeout;
  }
  void notify(unsigned count) noexcept { queue_->notify(count); }
  template <class Lock>
  void wait_until_ns(Lock& lock, std::int64_t deadline_ns) {
    wait_unlocked(lock, [=](detail::counted_condition_queue& q, std::uint64_t begun) {
      q.wait_since(begun, deadline_ns);
    });
  }
  template <class Lock, class Token>
  void wait_until_ns(Lock& lock, std::int64_t deadline_ns, const Token& stop) {
    wait_unlocked(lock, [&](detail::counted_condition_queue& q, std::uint64_t begun) {
      detail::stoppable_wait<Token> mine(stop, q);
      q.wait_since(begun, deadline_ns, mine.question());
    });
  }
  template <class Lock, class Wait>
  void wait_unlocked(Lock& lock, const Wait& wait_since) {
    const std::shared_ptr<detail::counted_condition_queue> q = queue_;
    const std::uint64_t begun = q->begin_wait();
    lock.unlock();
    try {
      wait_since(*q, begun);
    } catch (const std::exception&) {
      lock_again(lock);
      throw;
    } catch (...) {
      // The thread is left here, which nothing may stop: see thread_exit.hpp.
      try {
        lock.lock();
      } catch (...) {
        lock_or_end(lock);
      }
      throw;
    }
    lock_again(lock);
  }
  // Whatever it throws, the lock is held: also where the thread is left while it locks.
  template <class Lock>
  static void lock_again(Lock& lock) {
    try {
      lock.lock();
    } catch (...) {
      lock_or_end(lock);
      throw;
    }
  }
  template <class Lock>
  static void lock_or_end(Lock& lock) noexcept {
    lock.lock();
  }

  // May outlive the variable: notify_all() may be followed by its end while others still leave.
  std::shared_ptr<detail::counted_condition_queue> queue_;
};

}  // namespace strata
