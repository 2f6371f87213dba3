// SPDX-License-Identifier: Apache-2.0
// Semaphores, locks and barriers for the whole job: named objects (strata/resource.hpp), and the
// handles by which threads of all nodes use them.
//
//   strata::named<strata::counting_semaphore<>> lock("lock", 1);   // on one node
//   auto mine = strata::lock_handle::await("lock");                // on any
//   const std::lock_guard guard(mine);
//
// When the job loses a node, whoever waits by a handle, on whichever node, throws node_lost_error,
// which names it. What threads of that node held never comes back: a lock stays locked, and whoever
// has to wait for it from then on is told at once; the job is about to end. On the synchronizer's
// own node all that need not wait is done as ever, so what is held there can be given back; on
// other nodes nothing is, as every call throws, but for lock_handle::unlock(), which gives nothing
// back then. Who uses the object itself, and not a handle, waits for threads of its own node, and
// is not told.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strata/detail/deadline.hpp"
#include "strata/detail/parking.hpp"
#include "strata/resource.hpp"
#include "strata/semaphore.hpp"

namespace strata {

/// A semaphore for the whole job: `named<counting_semaphore<>> s("slots", 4)`, and elsewhere
/// semaphore_handle::await("slots"). Each operation is a call to its node, and throws as that does.
class semaphore_handle {
 public:
  /// Of a semaphore that is known already.
  explicit semaphore_handle(resource<counting_semaphore<>> s) noexcept : s_(s) {}
  /// Suspends until there is one with this name.
  static semaphore_handle await(std::string_view name) {
    return semaphore_handle(resource<counting_semaphore<>>::await(name));
  }
  /// Suspends until there is a unit. What was done before the release of it is visible. Throws
  /// node_lost_error, without one, when a node is lost.
  void acquire() { s_.call<&take>(); }
  /// Suspends for the call alone. False: there is none.
  [[nodiscard]] bool try_acquire() { return s_.call<&try_take>(); }
  /// Suspends until there is a unit, for that long at most, and for the call. False: there was none
  /// in time. The time is that of the semaphore's node, which decides: who has waited in vain takes
  /// no unit along. Throws as acquire(), and std::system_error or std::bad_alloc (from another node
  /// remote_error) where there is no thread or memory for a deadline.
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period>& time) {
    return take_until(detail::deadline_after(time));
  }
  /// The same until `time` at the latest, on the caller's clock.
  template <class Clock, class Duration>
  [[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration>& time) {
    return detail::attempt_until(time, [this](std::int64_t ns) { return take_until(ns); });
  }
  /// Suspends for the call alone. Throws misuse_error, and nothing has changed, for a negative
  /// number, and where there would be more units than counting_semaphore<>::max().
  void release(std::ptrdiff_t n = 1);

 private:
  friend class lock_handle;
  // False: there would be more than `most`.
  [[nodiscard]] bool release_within(std::ptrdiff_t n, std::ptrdiff_t most) {
    return s_.call<&put_back>(n, most);
  }
  static void take(counting_semaphore<>& s) { (void)take_within(s, INT64_MAX); }
  static bool take_within(counting_semaphore<>& s, std::int64_t limit_ns) {
    const std::int64_t deadline_ns = detail::deadline_after(std::chrono::nanoseconds(limit_ns));
    return s.core_.acquire_by(&detail::park_in_job, deadline_ns) == detail::unparked::woken;
  }
  bool take_until(std::int64_t deadline_ns) {
    return s_.call<&take_within>(detail::time_until(deadline_ns));
  }
  static bool try_take(counting_semaphore<>& s) { return s.try_acquire(); }
  // A number below 0 is more than there can be.
  static bool put_back(counting_semaphore<>& s, std::ptrdiff_t n, std::ptrdiff_t most) {
    return s.core_.try_release(static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(most));
  }
  resource<counting_semaphore<>> s_;
};

/// A lock for the whole job, for std::lock_guard and std::unique_lock: a semaphore of one unit,
/// `named<counting_semaphore<>> l("lock", 1)`.
class lock_handle {
 public:
  /// Of a semaphore of one unit.
  explicit lock_handle(semaphore_handle s) noexcept : s_(s) {}
  /// Suspends until there is one with this name.
  static lock_handle await(std::string_view name) {
    return lock_handle(semaphore_handle::await(name));
  }
  /// As acquire() of semaphore_handle. Who is lost with its node leaves the lock held: lock()
  /// throws node_lost_error in all who wait for it then or later, try_lock() has it never again.
  void lock() { s_.acquire(); }
  /// As try_acquire() of semaphore_handle: suspends for the call alone.
  [[nodiscard]] bool try_lock() { return s_.try_acquire(); }
  /// As try_acquire_for() of semaphore_handle: who has waited in vain does not have the lock.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& time) {
    return s_.try_acquire_for(time);
  }
  /// The same until `time` at the latest, on the caller's clock.
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& time) {
    return s_.try_acquire_until(time);
  }
  /// By any thread, on any node. Suspends for the call alone. Where a node is lost, or the lock's
  /// has left, it returns without an error, as a destructor may have called it (std::lock_guard);
  /// the next lock() says so. Throws misuse_error, and nothing has changed, where nobody has the
  /// lock; otherwise as release() of semaphore_handle.
  void unlock();

 private:
  semaphore_handle s_;
};

/// A barrier for the whole job: `named<barrier<>> b("phase", n)`. One call to its node for each
/// arrival; where many threads of many nodes meet often, a group's barrier costs less. Who arrives
/// where nobody is missing, as all have come and the phase is just ending or all have dropped out,
/// or with more than are missing, throws misuse_error on whichever node, and has not arrived. Each
/// phase takes exactly as many arrivals as it counts, and an arrival counts in the phase of its
/// token: one too many that comes when a phase has ended is one of the next one, in which another
/// is too many then.
class barrier_handle {
 public:
  /// Of a barrier that is known already.
  explicit barrier_handle(resource<barrier<>> b) noexcept : b_(b) {}
  /// Suspends until there is one with this name.
  static barrier_handle await(std::string_view name) {
    return barrier_handle(resource<barrier<>>::await(name));
  }
  /// Suspends until all have arrived, whose work before it is visible then. Throws node_lost_error
  /// when a node is lost: having arrived, if it has waited; if that is known already, it has not.
  void arrive_and_wait() { require_arrived(b_.call<&meet>(), 1); }

  /// What an arrival is known by: a number, which may travel.
  using arrival_token = barrier<>::arrival_token;
  /// Arrives, n times, and waits for nobody: suspends for the call alone. n is between 1 and what
  /// is missing in this phase.
  [[nodiscard]] arrival_token arrive(std::ptrdiff_t n = 1) {
    const attempt a = b_.call<&arrive_at>(n);
    require_arrived(a, n);
    return a.phase;
  }
  /// Suspends until the phase of the token has ended, as arrive_and_wait(); by any thread of the
  /// job.
  void wait(arrival_token phase) { (void)wait_until_ns(phase, INT64_MAX); }
  /// The same, for that long at most, and for the call. False: the phase has not ended in time. The
  /// arrival counts all the same, and the token may be used again. The time is that of the
  /// barrier's node. Throws as wait(), and std::system_error or std::bad_alloc (from another node
  /// remote_error) where there is no thread or memory for a deadline.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(arrival_token phase, const std::chrono::duration<Rep, Period>& time) {
    return wait_until_ns(phase, detail::deadline_after(time));
  }
  /// The same until `time` at the latest, on the caller's clock.
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(arrival_token phase,
                                const std::chrono::time_point<Clock, Duration>& time) {
    return detail::attempt_until(time, [&](std::int64_t ns) { return wait_until_ns(phase, ns); });
  }
  /// Arrives, and there is one less to come in each later phase. Suspends for the call alone.
  void arrive_and_drop() { require_arrived(b_.call<&drop_out>(), 1); }

 private:
  using attempt = detail::barrier_core::attempt;
  static attempt arrive_at(barrier<>& b, std::ptrdiff_t n) { return b.core_.try_arrive(n); }
  static attempt drop_out(barrier<>& b) { return b.core_.try_arrive_and_drop(); }
  static attempt meet(barrier<>& b) {
    detail::require_whole_job();
    const attempt a = b.core_.try_arrive(1);
    if (a.has_arrived != 0) b.core_.wait(a.phase, &detail::park_in_job);
    return a;
  }
  static void require_arrived(const attempt& a, std::ptrdiff_t n);
  static bool wait_within(barrier<>& b, arrival_token phase, std::int64_t limit_ns) {
    const std::int64_t deadline_ns = detail::deadline_after(std::chrono::nanoseconds(limit_ns));
    return b.core_.wait(phase, &detail::park_in_job, deadline_ns);
  }
  bool wait_until_ns(arrival_token phase, std::int64_t deadline_ns) {
    return b_.call<&wait_within>(phase, detail::time_until(deadline_ns));
  }
  resource<barrier<>> b_;
};

}  // namespace strata
