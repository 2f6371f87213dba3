// SPDX-License-Identifier: Apache-2.0
#include "threads/descriptor_calls.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "sched/waiting_stacks.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/detail/worker.hpp"
#include "threads/reactor.hpp"
#include "threads/socket_times.hpp"

namespace strata::io {

patience patience_for(int fd, short events, std::int64_t deadline, int late) {
  if (deadline != detail::parking::never) return {deadline};
  return {detail::own_deadline_ns(fd, events == POLLOUT ? SO_SNDTIMEO : SO_RCVTIMEO), late};
}

namespace {

// What holds now; 0: nothing. (poll() passes over negative descriptors.)
int look(int fd, short events) {
  if (fd < 0) return detail::fail_with(EBADF);
  pollfd p{fd, events, 0};
  const int n = ::poll(&p, 1, 0);
  if (n < 0) return -1;
  if ((p.revents & POLLNVAL) != 0) {
    return detail::fail_with(EBADF);
  }
  return p.revents;
}

}  // namespace

bool pause_before_look(detail::polling_backoff& pauses, std::int64_t deadline) {
  const std::int64_t pause_ns = pauses.next_pause_ns();
  if (pause_ns == 0) return true;
  const char nobody_wakes = 0;
  const std::int64_t end_ns = detail::deadline_now() + pause_ns;
  detail::park({.what = detail::wait_for_descriptor,
                .address = &nobody_wakes,
                .deadline_ns = std::min(deadline, end_ns)});
  return end_ns < deadline;
}

int wait_until(int fd, short events, const patience& until, detail::polling_backoff* in_vain) {
  const std::int64_t deadline = until.deadline;
  detail::polling_backoff unwatched;
  for (;;) {
    if (const int now = look(fd, events); now != 0) return now;
    if (in_vain != nullptr) in_vain->begin_anew();
    const std::int64_t left = deadline - detail::deadline_now();
    if (left <= 0) {
      return detail::fail_with(until.late);
    }
    if (detail::this_worker().owner == nullptr) {
      pollfd p{fd, events, 0};
      const std::int64_t ms =
          deadline == INT64_MAX ? -1 : std::min<std::int64_t>(left / 1'000'000 + 1, 1 << 30);
      if (::poll(&p, 1, static_cast<int>(ms)) < 0) return -1;
      continue;
    }
    detail::event_wait w{.fd = fd, .events = events, .deadline_ns = deadline};
    (void)detail::wait_for_events(w);
    if (w.error != 0) return detail::fail_with(w.error);
    // It is not what is asked for that a regular file always has.
    if (!w.is_watchable) pause_before_look(unwatched, deadline);
  }
}

}  // namespace strata::io
