// SPDX-License-Identifier: Apache-2.0
// From the standard's durations and time points to nanoseconds on the monotonic clock.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace strata::detail {

// Now on the clock that deadlines are on: the monotonic one, or in a simulation its own.
std::int64_t deadline_now() noexcept;

// Rounded up; at least 0, also where it is no number, and the most there is where there are too
// many.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds nanoseconds_in(const std::chrono::duration<Rep, Period>& time) {
  using seconds = std::chrono::duration<double>;
  if (!(time > time.zero())) return std::chrono::nanoseconds::zero();
  if (std::chrono::duration_cast<seconds>(time).count() > 9e9)
    return std::chrono::nanoseconds::max();
  return std::chrono::ceil<std::chrono::nanoseconds>(time);
}

// A time beyond 285 years is none.
template <class Rep, class Period>
std::int64_t deadline_after(const std::chrono::duration<Rep, Period>& time) {
  const std::int64_t now = deadline_now();
  const std::int64_t ns = nanoseconds_in(time).count();
  return ns > INT64_MAX - now ? INT64_MAX : now + ns;
}

// So long who waits for a clock that can be set waits at most before it looks at that again.
inline constexpr std::int64_t look_again_ns = 1'000'000'000;

// A time before 285 years ago has passed, and one in more than that is never: their distance from
// now need not be a number of nanoseconds. Nor need a time and now be numbers of what both are
// compared as, on whose range it depends how long ago a clock may have begun.
enum class far_time { passed, never, no };

template <class Time, class Now>
far_time is_far(const Time& time, const Now& now) {
  using seconds = std::chrono::duration<double>;
  using compared = std::common_type_t<typename Time::duration, typename Now::duration>;
  constexpr double most = 9e9;
  const double at = std::chrono::duration_cast<seconds>(time.time_since_epoch()).count();
  const double here = std::chrono::duration_cast<seconds>(now.time_since_epoch()).count();
  const double range = 0.97 * std::chrono::duration_cast<seconds>(compared::max()).count();
  const double left = at - here;
  if (std::abs(left) <= most && std::abs(at) <= range && std::abs(here) <= range)
    return far_time::no;
  return left > 0 ? far_time::never : far_time::passed;
}

// Whether it is that time by now.
template <class Clock, class Duration>
bool has_come(const std::chrono::time_point<Clock, Duration>& time) {
  const auto now = Clock::now();
  const far_time far = is_far(time, now);
  return far == far_time::no ? !(now < time) : far == far_time::passed;
}

// On a clock that can be set not the end, but when to look at it again.
template <class Clock, class Duration>
std::int64_t deadline_at(const std::chrono::time_point<Clock, Duration>& time) {
  const auto now = Clock::now();
  const far_time far = is_far(time, now);
  if (far != far_time::no) return far == far_time::passed ? deadline_now() : INT64_MAX;
  if (!(now < time)) return deadline_now();  // a distance without a sign would be far ahead
  const std::int64_t end_ns = deadline_after(time - now);
  return Clock::is_steady ? end_ns : std::min(end_ns, deadline_now() + look_again_ns);
}

// For them, who take their places behind others anew when they have looked: calls attempt(deadline
// in nanoseconds) until it says true, or `time` has come. True if it did.
template <class Clock, class Duration, class Attempt>
bool attempt_until(const std::chrono::time_point<Clock, Duration>& time, Attempt attempt) {
  do {
    if (attempt(deadline_at(time))) return true;
  } while (!has_come(time));
  return false;
}

}  // namespace strata::detail
