// SPDX-License-Identifier: Apache-2.0
// Time to pass, and others to go first. A thread from outside does as it always did.
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "os/clock.hpp"
#include "pthread/wait.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/worker.hpp"
#include "strata/pthread.h"

namespace strata::detail::posix {
namespace {

bool is_outside() noexcept { return this_worker().owner == nullptr; }

bool is_valid(const timespec& t) noexcept {
  return t.tv_sec >= 0 && t.tv_nsec >= 0 && t.tv_nsec < 1'000'000'000;
}

void sleep_until(const deadline& until) {
  act_on_cancellation();
  const kept_errno keep;
  const char nobody_wakes = 0;
  while (!until.has_passed()) {
    const unparked why = park({.what = "time to pass",
                               .address = &nobody_wakes,
                               .deadline_ns = until.to_ns(),
                               .interruptible = is_cancellable()});
    if (why == unparked::interrupted) act_on_cancellation();
  }
}

void sleep_for(const timespec& time) {
  if (time.tv_sec == 0 && time.tv_nsec == 0) {
    act_on_cancellation();
    return yield_stack();
  }
  timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += time.tv_nsec;
  if (end.tv_nsec >= 1'000'000'000) {
    end.tv_nsec -= 1'000'000'000;
    ++end.tv_sec;
  }
  if (__builtin_add_overflow(end.tv_sec, time.tv_sec, &end.tv_sec)) end.tv_sec = INT64_MAX;
  sleep_until({CLOCK_MONOTONIC, &end});
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
  return 0;
}

int strata_nanosleep(const timespec* time, timespec* left) {
  if (is_outside()) return nanosleep(time, left);
  if (!is_valid(*time)) {
    set_errno_here(EINVAL);
    return -1;
  }
  sleep_for(*time);
  return 0;
}

int strata_clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  if (is_outside() || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
    return clock_nanosleep(clock, flags, time, left);
  if (!is_valid(*time)) return EINVAL;
  if ((flags & TIMER_ABSTIME) != 0) {
    sleep_until({clock, time});
  } else {
    sleep_for(*time);
  }
  return 0;
}

int strata_usleep(unsigned microseconds) {
  if (is_outside()) return usleep(microseconds);
  sleep_for({static_cast<time_t>(microseconds / 1'000'000),
             static_cast<long>(microseconds % 1'000'000) * 1000});
  return 0;
}

unsigned strata_sleep(unsigned seconds) {
  if (is_outside()) return sleep(seconds);
  sleep_for({static_cast<time_t>(seconds), 0});
  return 0;
}
}
