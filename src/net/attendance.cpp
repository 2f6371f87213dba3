// SPDX-License-Identifier: Apache-2.0
#include "net/attendance.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "strata/detail/check.hpp"

namespace strata::net {

namespace {

// So often somebody begins to attend, while nobody sleeps, before the source is taken out of the
// epoll: that costs as much as the events that come to an epoll of which nobody wants to know.
constexpr unsigned begins_max = 16;

}  // namespace

void attendance::begin() noexcept {
  const std::lock_guard lock(mutex_);
  ++attendants_;
  if (asleep_) {
    settle();
  } else if (state_ != state::out && ++begins_ == begins_max) {
    become(state::out);
  }
}

bool attendance::end() noexcept {
  const std::lock_guard lock(mutex_);
  --attendants_;
  if (asleep_) settle();
  return asleep_;
}

void attendance::set_asleep(bool is) noexcept {
  const std::lock_guard lock(mutex_);
  asleep_ = is;
  begins_ = 0;
  if (asleep_) settle();
}

void attendance::settle() noexcept {
  if (attendants_ == 0) {
    become(state::watched);
  } else if (state_ == state::watched) {
    become(state::masked);
  }
}

// The kernel looks for what is there already when the event is asked for again.
void attendance::become(state next) noexcept {
  const state last = std::exchange(state_, next);
  if (last == next) return;
  epoll_event event{};
  if (next == state::watched) event.events = EPOLLIN;
  const int how = next == state::out   ? EPOLL_CTL_DEL
                  : last == state::out ? EPOLL_CTL_ADD
                                       : EPOLL_CTL_MOD;
  const int rc = ::epoll_ctl(epoll_, how, source_, &event);
  STRATA_CHECK(rc == 0, errno);
}

}  // namespace strata::net
