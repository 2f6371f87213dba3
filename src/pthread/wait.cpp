// SPDX-License-Identifier: Apache-2.0
#include "pthread/wait.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/clock.hpp"
#include "pthread/exit.hpp"
#include "pthread/record.hpp"
#include "pthread/signals.hpp"
#include "sched/place.hpp"
#include "strata/detail/join.hpp"
#include "strata/pthread.h"

namespace strata::detail::posix {
namespace {

constexpr long ns_per_s = 1'000'000'000;

thread_local constinit const void* kept_identity = nullptr;

[[gnu::noinline]] const void* this_outside_thread() noexcept {
  alignas(64) static thread_local const char here = 0;
  return kept_identity != nullptr ? kept_identity : &here;
}

}  // namespace

int deadline::check() const noexcept {
  if (until == nullptr) return 0;
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return EINVAL;
  return until->tv_nsec < 0 || until->tv_nsec >= ns_per_s ? EINVAL : 0;
}

bool deadline::has_passed() const noexcept {
  if (until == nullptr) return false;
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec != until->tv_sec ? now.tv_sec > until->tv_sec : now.tv_nsec >= until->tv_nsec;
}

std::int64_t deadline::to_ns() const noexcept {
  if (until == nullptr) return parking::never;
  timespec now;
  clock_gettime(clock, &now);
  // A century is for ever.
  constexpr std::int64_t longest_s = 3'000'000'000;
  std::int64_t s = 0;
  if (__builtin_sub_overflow(std::int64_t{until->tv_sec}, std::int64_t{now.tv_sec}, &s))
    return until->tv_sec > 0 ? parking::never : os::now_ns();
  if (s > longest_s) return parking::never;
  if (s < -longest_s) return os::now_ns();
  return os::now_ns() + s * ns_per_s + (until->tv_nsec - now.tv_nsec);
}

timespec from_now(const timespec& time) noexcept {
  timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += time.tv_nsec;
  if (end.tv_nsec >= ns_per_s) {
    end.tv_nsec -= ns_per_s;
    ++end.tv_sec;
  }
  if (__builtin_add_overflow(end.tv_sec, time.tv_sec, &end.tv_sec)) end.tv_sec = INT64_MAX;
  return end;
}

bool is_cancellable() noexcept {
  const record* const r = self_if_any();
  // Who has no record has no pthread_t that somebody could cancel.
  return r != nullptr && !r->leaving && r->may_be_cancelled.load(std::memory_order_relaxed);
}

bool has_to_leave(const record& r) noexcept {
  if (r.leaving || !r.may_be_cancelled.load(std::memory_order_relaxed)) return false;
  // Without the lock, which a handler that writes somewhere may have interrupted. One that comes
  // now is found by the wait, or by the next call. Partner: strata_pthread_cancel().
  return r.body->extras->interrupted.load(std::memory_order_acquire);
}

void act_on_cancellation() {
  record* const r = self_if_any();
  if (r == nullptr) return;
  if (r->more.signalled.load(std::memory_order_relaxed)) [[unlikely]]
    deliver_signals(*r);
  if (has_to_leave(*r)) leave_thread(*r, PTHREAD_CANCELED);
}

const void* me() noexcept {
  const worker& w = this_worker();
  if (w.owner == nullptr) return this_outside_thread();
  const stack* const s = static_cast<const place&>(w).current;
  return s != nullptr ? static_cast<const void*>(s) : &w;
}

const void* me_anywhere() noexcept {
  // A stack's address is a multiple of 64 and has 47 bits, a process's number 22.
  const auto here = reinterpret_cast<std::uintptr_t>(me()) >> 6;
  return reinterpret_cast<const void*>(here | static_cast<std::uintptr_t>(getpid()) << 41);
}

[[gnu::noinline]] void keep_identity() noexcept { kept_identity = me(); }

bool is_process_thread() noexcept { return getpid() == static_cast<pid_t>(syscall(SYS_gettid)); }

[[gnu::noinline]] bool runs_on_process_thread() noexcept {
  enum class answer : unsigned char { unknown, yes, no };
  static thread_local constinit answer known = answer::unknown;
  if (known == answer::unknown) known = is_process_thread() ? answer::yes : answer::no;
  return known == answer::yes;
}

unparked give_way(std::int64_t deadline_ns) {
  if (deadline_ns <= os::now_ns()) return unparked::timed_out;
  if (this_worker().owner == nullptr || nothing_else_is_ready()) {
    // Not as fast as it can: there is little to be had here now.
    constexpr timespec a_little{0, 50'000};
    nanosleep(&a_little, nullptr);
  } else {
    yield_stack();
  }
  return unparked::woken;
}

unparked park_or_give_way(const parking& how) {
  return wait_or_give_way(
      how.deadline_ns, [&] { return park(how); },
      [&] {
        if (how.then != nullptr) how.then(how.then_argument);
      });
}

bool stops_others() noexcept {
  const worker& w = this_worker();
  if (w.owner == nullptr || static_cast<const place&>(w).current == nullptr) return false;
  const record* const r = self_if_any();
  if (r == nullptr || !r->is_main || living.load(std::memory_order_relaxed) != 0) return true;
  return !runs_on_process_thread();
}

unparked patience::pause(const deadline& until, bool interruptible) {
  constexpr std::int64_t longest_ns = 2'000'000;
  const char nobody_wakes = 0;
  const unparked why =
      park_or_give_way({.what = what_,
                        .address = &nobody_wakes,
                        .deadline_ns = std::min(os::now_ns() + pause_ns_, until.to_ns()),
                        .interruptible = interruptible});
  pause_ns_ = std::min(pause_ns_ * 2, longest_ns);
  return why;
}

}  // namespace strata::detail::posix

extern "C" [[gnu::noinline]] int* strata_errno_location() { return &errno; }
