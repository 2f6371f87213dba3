// SPDX-License-Identifier: Apache-2.0
// From the standard's durations and time points to nanoseconds on the monotonic clock.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>

namespace strata::detail {

// Now on the clock that deadlines are on: the monotonic one, or in a simulation its own.
std::int64_t deadline_now() noexcept;

// Rounded up; a time beyond 292 years is none.
template <class Rep, class Period>
std::int64_t deadline_after(const std::chrono::duration<Rep, Period>& time) {
  using seconds = std::chrono::duration<double>;
  const std::int64_t now = deadline_now();
  if (time <= time.zero()) return now;
  if (std::chrono::duration_cast<seconds>(time).count() > 9e9) return INT64_MAX;
  const std::int64_t ns = std::chrono::ceil<std::chrono::nanoseconds>(time).count();
  return ns > INT64_MAX - now ? INT64_MAX : now + ns;
}

// So long who waits for a clock that can be set waits at most before it looks at that again.
inline constexpr std::int64_t look_again_ns = 1'000'000'000;

// On a clock that can be set not the end, but when to look at it again. A time before 285 years ago
// has passed, and one in more than that is none: both and their distance from now need not be
// numbers of nanoseconds.
template <class Clock, class Duration>
std::int64_t deadline_at(const std::chrono::time_point<Clock, Duration>& time) {
  using seconds = std::chrono::duration<double>;
  constexpr double most = 9e9;
  const auto now = Clock::now();
  const double at = std::chrono::duration_cast<seconds>(time.time_since_epoch()).count();
  const double left = at - std::chrono::duration_cast<seconds>(now.time_since_epoch()).count();
  if (at < -most || left < -most) return deadline_now();
  if (at > most || left > most) return INT64_MAX;
  const std::int64_t end_ns = deadline_after(time - now);
  return Clock::is_steady ? end_ns : std::min(end_ns, deadline_now() + look_again_ns);
}

// For them, who take their places behind others anew when they have looked: calls attempt(deadline
// in nanoseconds) until it says true, or `time` has come. True if it did.
template <class Clock, class Duration, class Attempt>
bool attempt_until(const std::chrono::time_point<Clock, Duration>& time, Attempt attempt) {
  do {
    if (attempt(deadline_at(time))) return true;
  } while (Clock::now() < time);
  return false;
}

}  // namespace strata::detail
