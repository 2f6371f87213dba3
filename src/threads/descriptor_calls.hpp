// SPDX-License-Identifier: Apache-2.0
// How a call for a descriptor waits: it is made where it need not, and until then the thread waits
// for the descriptor to be ready, and for those that wait for the same before it.
//
// As the system's calls, what fails returns -1 and sets errno. Nothing here stops a worker.
#pragma once
#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <cstdint>
#include <new>
#include <system_error>

#include "strata/detail/parking.hpp"
#include "threads/errno_here.hpp"
#include "threads/polling_backoff.hpp"
#include "threads/turns.hpp"

namespace strata::io {

inline bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// Until when a call waits, and what it fails with then.
struct patience {
  std::int64_t deadline;
  int late = ETIMEDOUT;
};

// Where the caller gives no time the socket may have one of its own. Asked when the call has to
// wait.
[[nodiscard]] patience patience_for(int fd, short events, std::int64_t deadline, int late = EAGAIN);

// Until the next look at what nobody tells of. False: the time is over.
bool pause_before_look(detail::polling_backoff& pauses, std::int64_t deadline);

// Until one of `events` holds, or what poll() always tells of. Returns what holds. `in_vain` begins
// anew where it is not ready at once. Throws std::bad_alloc, and std::system_error where there is
// no thread for deadlines.
int wait_until(int fd, short events, const patience& until,
               detail::polling_backoff* in_vain = nullptr);

// What keeps a thread from waiting is told as the rest is, by errno.
template <class Wait>
auto without_exceptions(const Wait& wait) -> decltype(wait()) {
  try {
    return wait();
  } catch (const std::bad_alloc&) {
    return detail::fail_with(ENOMEM);
  } catch (const std::system_error&) {
    return detail::fail_with(EAGAIN);  // there is no thread for deadlines
  }
}

// Makes `call`, which does not block, until it need not wait any more.
template <class Call>
auto again(int fd, short events, std::int64_t deadline, const Call& call) {
  using outcome = decltype(call());
  const outcome at_once = call();
  if (at_once >= 0 || !would_block(detail::errno_here())) return at_once;
  return without_exceptions([&]() -> outcome {
    const patience until = patience_for(fd, events, deadline);
    detail::descriptor_turn mine(fd, events == POLLOUT);
    if (mine.take(until.deadline) != detail::unparked::woken) return detail::fail_with(until.late);
    detail::polling_backoff pauses(detail::polling_backoff::looks_in_vain);
    for (bool goes_on = true;;) {
      if (goes_on && wait_until(fd, events, until, &pauses) < 0) return -1;
      const outcome later = call();
      if (later >= 0 || !would_block(detail::errno_here())) return later;
      if (!goes_on) return detail::fail_with(until.late);
      // The kernel calls ready what the call has to wait for all the same: with something in the
      // error queue a socket is, whatever it is asked for.
      goes_on = pause_before_look(pauses, until.deadline);
    }
  });
}

// Makes `call`, which blocks where the descriptor is not ready, once it is: by who has the turn,
// because of several who see that it is ready all but one could block.
template <class Call>
auto when_ready(int fd, short events, std::int64_t deadline, const Call& call) {
  using outcome = decltype(call());
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) != 0) return again(fd, events, deadline, call);
  return without_exceptions([&]() -> outcome {
    const patience until = patience_for(fd, events, deadline);
    detail::descriptor_turn mine(fd, events == POLLOUT);
    if (mine.take(until.deadline) != detail::unparked::woken) return detail::fail_with(until.late);
    if (wait_until(fd, events, until) < 0) return -1;
    return call();
  });
}

}  // namespace strata::io
