// SPDX-License-Identifier: Apache-2.0
#include "net/attendance.hpp"

#include <sys/epoll.h>

#include <cerrno>

#include "strata/detail/check.hpp"

namespace strata::net {

void attendance::begin() noexcept {
  const std::lock_guard lock(mutex_);
  if (attendants_++ == 0) watch(false);
}

void attendance::end() noexcept {
  const std::lock_guard lock(mutex_);
  if (--attendants_ == 0) watch(true);
}

// The kernel looks for what is there already when the event is asked for again.
void attendance::watch(bool watched) const noexcept {
  epoll_event event{};
  if (watched) event.events = EPOLLIN;
  const int rc = ::epoll_ctl(epoll_, EPOLL_CTL_MOD, source_, &event);
  STRATA_CHECK(rc == 0, errno);
}

}  // namespace strata::net
