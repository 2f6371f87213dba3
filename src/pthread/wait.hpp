// SPDX-License-Identifier: Apache-2.0
// What all waits of POSIX have in common: deadlines on two clocks, cancellation, and an errno that
// stays the thread's own.
#pragma once
#include <atomic>
#include <cstdint>
#include <ctime>
#include <new>
#include <system_error>

#include "strata/detail/parking.hpp"
#include "threads/errno_here.hpp"
#include "threads/polling_backoff.hpp"

namespace strata::detail::posix {

struct record;

// The functions of POSIX that return their error leave errno alone, also when they come back on
// another OS thread.
class kept_errno {
 public:
  kept_errno() noexcept : value_(errno_here()) {}
  ~kept_errno() { set_errno_here(value_); }
  kept_errno(const kept_errno&) = delete;
  kept_errno& operator=(const kept_errno&) = delete;

 private:
  const int value_;
};

// A point in time, as callers give it.
struct deadline {
  clockid_t clock = CLOCK_MONOTONIC;
  const timespec* until = nullptr;  // null: never

  // 0 or EINVAL.
  [[nodiscard]] int check() const noexcept { return until == nullptr ? 0 : check_time(); }
  [[nodiscard]] bool has_passed() const noexcept;
  // On the monotonic clock. All others but it can be set meanwhile, or go on while the machine
  // sleeps: this is in a second at the latest then, and has_passed() is to be asked again.
  [[nodiscard]] std::int64_t to_ns() const noexcept;
  // For parking::look_again, with this as its argument: who asks is not woken for it.
  [[nodiscard]] auto asked_again() const noexcept { return can_be_set() ? &look_again : nullptr; }
  // `how`, until then. This outlives the wait.
  [[nodiscard]] parking bound(parking how) const noexcept {
    how.deadline_ns = to_ns();
    how.look_again = asked_again();
    how.look_again_argument = this;
    return how;
  }

 private:
  [[nodiscard]] int check_time() const noexcept;
  [[nodiscard]] bool can_be_set() const noexcept {
    return until != nullptr && clock != CLOCK_MONOTONIC;
  }
  static std::int64_t look_again(const void* it) noexcept;
};

// That long from now. `time` is not negative; too long is for ever.
[[nodiscard]] timespec from_now(const timespec& time, clockid_t clock = CLOCK_MONOTONIC) noexcept;

// Whether the calling thread's waits are to end when it is cancelled.
[[nodiscard]] bool is_cancellable() noexcept;
// Whether it is to end now: it has been cancelled, and is cancellable. Also by who waits in its
// place.
[[nodiscard]] bool has_to_leave(const record& r) noexcept;
// At the end of a wait, or before it: does not return if the calling thread has been cancelled.
void act_on_cancellation();
// The same for what is no point of cancellation: the handlers of what has come for the caller run.
void act_on_signals();

// A thread without a worker.
[[nodiscard]] bool is_outside() noexcept;
// One that does as it always did: it has no pthread_t that somebody could cancel, or is in a
// handler that must not wait here.
[[nodiscard]] bool is_unknown_outside() noexcept;

// Something that tells the calling thread from all others, also from those that have ended; never
// null. (After four million threads on its stack the first is mistaken for it.)
[[nodiscard]] const void* me() noexcept;
// The same among all processes, but for threads that have ended: there is no room for them.
[[nodiscard]] const void* me_anywhere() noexcept;
// The calling thread, of a runtime so far, stays who it is when it has none any more.
void keep_identity() noexcept;
// The caller runs on the OS thread with which the process began.
[[nodiscard]] bool is_process_thread() noexcept;
// The same of a worker, without asking the kernel each time.
[[nodiscard]] bool runs_on_process_thread() noexcept;

// What others get instead of a wait that could not be: their turn. `timed_out` when that time has
// come, else `woken`.
unparked give_way(std::int64_t deadline_ns);

// Calls wait(), which parks until then; where it could not, otherwise(). Callers in C cannot be
// told that there is no memory or no thread for a deadline, and need not be: then it is as if it
// had been woken without a reason.
template <class Wait, class Otherwise>
unparked wait_or_give_way(std::int64_t deadline_ns, Wait&& wait, Otherwise&& otherwise) {
  try {
    return wait();
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {
  }
  otherwise();
  return give_way(deadline_ns);
}
template <class Wait>
unparked wait_or_give_way(std::int64_t deadline_ns, Wait&& wait) {
  return wait_or_give_way(deadline_ns, std::forward<Wait>(wait), [] {});
}

// park() so; `then` is done in any case.
unparked park_or_give_way(const parking& how);

// While one exists, who made it is counted as being inside something; also when it is cancelled in
// there. Its end is the last access. Partners: strata_pthread_barrier_destroy(),
// strata_pthread_cond_destroy().
class presence {
 public:
  explicit presence(std::atomic<std::uint32_t>& inside) noexcept : inside_(inside) {
    inside_.fetch_add(1, std::memory_order_relaxed);
  }
  ~presence() { inside_.fetch_sub(1, std::memory_order_release); }
  presence(const presence&) = delete;
  presence& operator=(const presence&) = delete;

 private:
  std::atomic<std::uint32_t>& inside_;
};

// Whether a call that waits in the kernel would keep others from the caller's worker, or signals
// from the caller. Not for a main() without threads on the process's first OS thread: it waits as
// ever, and signals end its waits.
[[nodiscard]] bool stops_others() noexcept;

// For what lies in memory that processes share: a thread of ours can be woken only by its own
// process, so it looks again and again, seldom at last. `until` may have passed.
class polled_wait {
 public:
  explicit polled_wait(const char* what) noexcept : what_(what) {}
  // `signalled`: a handler has run.
  unparked pause(const deadline& until, bool interruptible);

 private:
  const char* what_;
  polling_backoff pauses_;
};

}  // namespace strata::detail::posix
