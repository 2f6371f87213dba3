// SPDX-License-Identifier: Apache-2.0
#include "net/attendance.hpp"

#include <sys/epoll.h>

#include <cerrno>

#include "strata/detail/check.hpp"

namespace strata::net {

void attendance::begin() noexcept {
  const std::lock_guard lock(mutex_);
  ++attendants_;
  settle();
}

bool attendance::end() noexcept {
  const std::lock_guard lock(mutex_);
  --attendants_;
  settle();
  return asleep_;
}

void attendance::set_asleep(bool is) noexcept {
  const std::lock_guard lock(mutex_);
  asleep_ = is;
  settle();
}

// The kernel looks for what is there already when the event is asked for again.
void attendance::settle() noexcept {
  const bool wanted = attendants_ == 0;
  if (!asleep_ || watched_ == wanted) return;
  watched_ = wanted;
  epoll_event event{};
  if (wanted) event.events = EPOLLIN;
  const int rc = ::epoll_ctl(epoll_, EPOLL_CTL_MOD, source_, &event);
  STRATA_CHECK(rc == 0, errno);
}

}  // namespace strata::net
