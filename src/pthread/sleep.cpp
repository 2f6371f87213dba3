// SPDX-License-Identifier: Apache-2.0
// Time to pass, and others to go first.
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/clock.hpp"
#include "os/futex.hpp"
#include "pthread/record.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/worker.hpp"
#include "strata/pthread.h"

namespace strata::detail::posix {
namespace {

bool is_valid(const timespec& t) noexcept {
  return t.tv_sec >= 0 && t.tv_nsec >= 0 && t.tv_nsec < 1'000'000'000;
}

bool is_of_time(clockid_t clock) noexcept {
  return clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME ||
         clock == CLOCK_TAI;
}
// Whoever computes moves it on. (Those of other processes and threads are negative numbers.)
bool is_of_processors(clockid_t clock) noexcept {
  return clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID || clock < 0;
}

// By a thread from outside. A handler may leave it by siglongjmp(), and sleep itself: nobody else
// knows where it sleeps, but by its record.
unparked sleep_outside(const deadline& until, std::int64_t end_ns) {
  // Where there is no end the kernel would begin it again after a handler.
  constexpr std::int64_t longest_ns = 3'600'000'000'000;
  record& r = self();
  // Acquire, and before the look. Partner: tell_sleeper() in cancel.cpp.
  const std::uint32_t seen = r.times_cancelled.load(std::memory_order_acquire);
  if (has_to_leave(r)) return unparked::interrupted;
  const std::int64_t left_ns = end_ns - os::now_ns();
  if (left_ns <= 0) return until.has_passed() ? unparked::timed_out : unparked::woken;
  const auto why = os::blocking_futex_wait(r.times_cancelled, seen, std::min(left_ns, longest_ns));
  return why == os::futex_outcome::interrupted ? unparked::signalled : unparked::woken;
}

// False: a signal handler has run before.
bool sleep_until(const deadline& until) {
  act_on_cancellation();
  const kept_errno keep;
  const char nobody_wakes = 0;
  const bool asks = is_of_processors(until.clock);
  while (!until.has_passed()) {
    constexpr std::int64_t soon_ns = 2'000'000;
    const parking how{.what = "time to pass",
                      .address = &nobody_wakes,
                      .deadline_ns = asks ? os::now_ns() + soon_ns : parking::never,
                      .interruptible = is_cancellable(),
                      .ends_by_signal = true};
    const parking bound = asks ? how : until.bound(how);
    const unparked why =
        is_outside() ? sleep_outside(until, bound.deadline_ns) : park_or_give_way(bound);
    if (why == unparked::interrupted) act_on_cancellation();
    if (why == unparked::signalled) return false;
  }
  act_on_cancellation();
  return true;
}

// The same; *left is then what is missing. That a clock is set makes no difference.
bool sleep_for(const timespec& time, timespec* left, clockid_t clock = CLOCK_MONOTONIC) {
  if (clock == CLOCK_REALTIME || clock == CLOCK_TAI) clock = CLOCK_MONOTONIC;
  if (time.tv_sec == 0 && time.tv_nsec == 0) {
    act_on_cancellation();
    (void)strata_sched_yield();
    return true;
  }
  const timespec end = from_now(time, clock);
  if (sleep_until({clock, &end})) return true;
  if (left == nullptr) return false;
  timespec now;
  clock_gettime(clock, &now);
  *left = {end.tv_sec - now.tv_sec, end.tv_nsec - now.tv_nsec};
  if (left->tv_nsec < 0) *left = {left->tv_sec - 1, left->tv_nsec + 1'000'000'000};
  if (left->tv_sec < 0) *left = {0, 0};
  return false;
}

int interrupted() {
  set_errno_here(EINTR);
  return -1;
}

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_sched_yield() {
  if (is_outside()) return sched_yield();
  const kept_errno keep;
  strata::detail::yield_stack();
  // A loop around this may wait for a handler of the caller's.
  if (any_was_sent.load(std::memory_order_relaxed)) act_on_signals();
  return 0;
}

int strata_nanosleep(const timespec* time, timespec* left) {
  if (is_unknown_outside()) return nanosleep(time, left);
  if (!is_valid(*time)) {
    set_errno_here(EINVAL);
    return -1;
  }
  return sleep_for(*time, left) ? 0 : interrupted();
}

int strata_clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  if (is_unknown_outside()) return clock_nanosleep(clock, flags, time, left);
  if (!is_of_time(clock) && !is_of_processors(clock)) {
    // What else there is wakes the machine, which only the kernel can.
    act_on_cancellation();
    const int error = clock_nanosleep(clock, flags, time, left);
    act_on_cancellation();
    return error;
  }
  if (!is_valid(*time)) return EINVAL;
  if (is_of_processors(clock)) {
    // Whether there can be such waits at all.
    constexpr timespec long_ago{0, 0};
    if (const int error = clock_nanosleep(clock, TIMER_ABSTIME, &long_ago, nullptr)) return error;
  }
  if ((flags & TIMER_ABSTIME) != 0) return sleep_until({clock, time}) ? 0 : EINTR;
  return sleep_for(*time, left, clock) ? 0 : EINTR;
}

int strata_usleep(unsigned microseconds) {
  if (is_unknown_outside()) return usleep(microseconds);
  const bool slept = sleep_for({static_cast<time_t>(microseconds / 1'000'000),
                                static_cast<long>(microseconds % 1'000'000) * 1000},
                               nullptr);
  return slept ? 0 : interrupted();
}

unsigned strata_sleep(unsigned seconds) {
  if (is_unknown_outside()) return sleep(seconds);
  timespec left{};
  if (sleep_for({static_cast<time_t>(seconds), 0}, &left)) return 0;
  // To the nearest second, as the C library has it.
  return static_cast<unsigned>(left.tv_sec) + (left.tv_nsec >= 500'000'000 ? 1U : 0U);
}
}
