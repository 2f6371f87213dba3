// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/wait_set.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <exception>

#include "os/clock.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"
#include "sched/waiting_stacks.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/parking.hpp"
#include "threads/errno_here.hpp"
#include "threads/reactor.hpp"

namespace strata::preload {

using detail::unparked;
namespace posix = detail::posix;

// False: there is no set.
bool wait_set::fill() {
  const int set = epoll_create1(EPOLL_CLOEXEC);
  if (set < 0) return false;
  watched_.emplace(descriptor_copy::of_ours{set});
  waits_for_ = watched_->number();
  for (std::size_t i = 0; i < count_; ++i) {
    if (fds_[i].fd < 0) continue;
    // The bits of poll and epoll are the same on Linux.
    epoll_event e{};
    e.events = static_cast<std::uint16_t>(fds_[i].events);
    if (epoll_ctl(waits_for_, EPOLL_CTL_ADD, fds_[i].fd, &e) == 0) continue;
    switch (detail::errno_here()) {
      case EPERM:  // a regular file: there is nothing of it to wait for
        break;
      case EEXIST:  // named twice
        for (std::size_t j = 0; j < i; ++j) {
          if (fds_[j].fd == fds_[i].fd) e.events |= static_cast<std::uint16_t>(fds_[j].events);
        }
        epoll_ctl(waits_for_, EPOLL_CTL_MOD, fds_[i].fd, &e);
        break;
      default:
        return false;
    }
  }
  events_ = POLLIN;
  return true;
}

bool wait_set::begin() {
  if (begun_) return true;
  const auto is_one = [](const pollfd& p) { return p.fd >= 0; };
  const auto n = std::count_if(fds_, fds_ + count_, is_one);
  if (n > 1) return begun_ = fill();
  is_empty_ = n == 0;
  if (n == 1) {
    const pollfd& one = *std::find_if(fds_, fds_ + count_, is_one);
    watched_.emplace(one.fd, descriptor_copy::use::alone);
    waits_for_ = watched_->is_there() ? watched_->number() : one.fd;
    events_ = one.events;
  }
  return begun_ = true;
}

wait_set::outcome wait_set::wait(std::int64_t deadline_ns) {
  // What the kernel tells unasked, of errors for example, may not be what the caller looks for.
  const char nobody_wakes = 0;
  try {
    if (!begin()) return outcome::impossible;
    const std::int64_t pause_ns = in_vain_.next_pause_ns();
    const bool pauses = pause_ns != 0;
    for (;;) {
      unparked why{};
      if (is_empty_ || pauses) {
        const std::int64_t end_ns =
            pauses ? std::min(deadline_ns, os::now_ns() + pause_ns) : deadline_ns;
        why = detail::park({.what = detail::wait_for_descriptor,
                            .address = &nobody_wakes,
                            .deadline_ns = end_ns,
                            .interruptible = posix::is_cancellable()});
      } else {
        detail::event_wait w{.fd = waits_for_,
                             .events = events_,
                             .deadline_ns = deadline_ns,
                             .interruptible = posix::is_cancellable()};
        why = detail::wait_for_events(w);
        if (w.error != 0) return outcome::impossible;
      }
      switch (why) {
        case unparked::timed_out:
          if (deadline_ns <= os::now_ns()) return outcome::late;
          if (pauses) return outcome::ready;
          break;
        case unparked::interrupted:
          posix::act_on_cancellation();
          break;
        case unparked::signalled:
          return outcome::handled;
        default:
          return outcome::ready;
      }
    }
  } catch (const std::exception&) {
    return outcome::impossible;
  }
}

}  // namespace strata::preload
