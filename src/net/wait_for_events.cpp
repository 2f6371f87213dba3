// SPDX-License-Identifier: Apache-2.0
#include "net/wait_for_events.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/errno_error.hpp"
#include "strata/detail/check.hpp"

namespace strata::net {

os::descriptor epoll_on(std::span<const int> descriptors) {
  os::descriptor all(::epoll_create1(EPOLL_CLOEXEC));
  if (!all) throw errno_error("cannot make an epoll descriptor", errno);
  for (const int fd : descriptors) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(all.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      throw errno_error("cannot watch a descriptor", errno);
  }
  return all;
}

int wait_for_events(int epoll, epoll_event* events, int events_max, std::int64_t timeout_ns) {
  timespec timeout{};
  if (timeout_ns >= 0) timeout = {timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  int n = ::epoll_pwait2(epoll, events, events_max, timeout_ns >= 0 ? &timeout : nullptr, nullptr);
  // Before Linux 5.11, or where a filter of system calls does not know it: whole milliseconds.
  if (n < 0 && (errno == ENOSYS || errno == EPERM)) {
    const std::int64_t ms = (timeout_ns + 999'999) / 1'000'000;
    const int timeout_ms =
        timeout_ns < 0 ? -1 : static_cast<int>(std::min<std::int64_t>(ms, 1'000'000));
    n = ::epoll_wait(epoll, events, events_max, timeout_ms);
  }
  STRATA_CHECK(n >= 0 || errno == EINTR, errno);
  return std::max(n, 0);
}

void sharpen_timers() noexcept {
  static thread_local bool sharpened = false;
  if (std::exchange(sharpened, true)) return;
  ::prctl(PR_SET_TIMERSLACK, 1'000UL, 0UL, 0UL, 0UL);
}

}  // namespace strata::net
