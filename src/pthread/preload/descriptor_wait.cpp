// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/descriptor_wait.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <exception>

#include "os/clock.hpp"
#include "pthread/preload/native.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"
#include "sched/place.hpp"
#include "sched/stall.hpp"
#include "strata/detail/join.hpp"
#include "threads/reactor.hpp"

namespace strata::preload {

using detail::unparked;
namespace posix = detail::posix;

bool can_be_suspended() {
  if (native_depth != 0) return false;
  const detail::worker& w = detail::this_worker();
  if (w.owner == nullptr || static_cast<const detail::place&>(w).current == nullptr) return false;
  posix::act_on_cancellation();
  return posix::stops_others();
}

int refuse(int error) noexcept {
  detail::set_errno_here(error);
  return -1;
}

bool never_waits(int fd) noexcept {
  const int flags = fcntl(fd, F_GETFL);
  return flags < 0 || (flags & O_NONBLOCK) != 0;
}

void descriptor_wait::begin() {
  if (turn_) return;
  timeval longest{};
  socklen_t size = sizeof longest;
  if (what_.timeout_option != 0 &&
      getsockopt(what_.fd, SOL_SOCKET, what_.timeout_option, &longest, &size) == 0 &&
      (longest.tv_sec != 0 || longest.tv_usec != 0)) {
    const timespec end =
        posix::from_now({longest.tv_sec, static_cast<long>(longest.tv_usec) * 1000});
    deadline_ns_ = posix::deadline{CLOCK_MONOTONIC, &end}.to_ns();
  }
  turn_.emplace(what_.fd, what_.events == POLLOUT);
}

// Nothing: the thread goes on waiting.
std::optional<descriptor_wait::outcome> descriptor_wait::judge(unparked why) {
  switch (why) {
    case unparked::timed_out:
      if (deadline_ns_ <= os::now_ns()) return outcome::late;
      break;
    case unparked::interrupted:
      posix::act_on_cancellation();
      break;
    case unparked::signalled: {
      // As the kernel has it: a wait for a time is not begun again.
      const posix::record* const r = posix::self_if_any();
      if (deadline_ns_ != detail::parking::never || r == nullptr || !r->restarts)
        return outcome::handled;
      break;
    }
    default:
      return outcome::ready;
  }
  return {};
}

std::optional<descriptor_wait::outcome> descriptor_wait::take_turn() {
  while (!turn_->is_mine()) {
    const std::optional<outcome> end = judge(turn_->take(deadline_ns_, posix::is_cancellable()));
    if (end && *end != outcome::ready) return end;
  }
  return {};
}

// With the turn: one copy for all who wait for the same.
descriptor_wait::outcome descriptor_wait::wait_once() {
  if (!copy_) copy_.emplace(what_.fd);
  // The kernel may call ready what is not for this call: a datagram socket that is not connected,
  // whose addressee has no room. Then we look again, less and less often.
  constexpr unsigned often = 8;
  constexpr std::int64_t longest_ns = 2'000'000;
  if (in_vain_++ >= often) {
    const char nobody_wakes = 0;
    const std::int64_t pause_ns =
        std::min(std::int64_t{20'000} << std::min(in_vain_ - often, 10U), longest_ns);
    const unparked why =
        detail::park({.what = detail::wait_for_descriptor,
                      .address = &nobody_wakes,
                      .deadline_ns = std::min(deadline_ns_, os::now_ns() + pause_ns),
                      .interruptible = posix::is_cancellable()});
    if (const std::optional<outcome> end = judge(why)) return *end;
  }
  for (;;) {
    detail::event_wait w{.fd = fd(),
                         .events = what_.events,
                         .deadline_ns = deadline_ns_,
                         .interruptible = posix::is_cancellable()};
    const unparked why = detail::wait_for_events(w);
    if (w.error != 0) return outcome::impossible;
    if (const std::optional<outcome> end = judge(why)) return *end;
  }
}

descriptor_wait::outcome descriptor_wait::until_ready() {
  // Who is ready may be the one who brings it: that is sooner than the kernel's word.
  if (!gave_way_ && !detail::nothing_else_is_ready()) {
    gave_way_ = true;
    detail::yield_stack();
    posix::act_on_cancellation();
    return outcome::ready;
  }
  try {
    begin();
    if (const std::optional<outcome> end = take_turn()) return *end;
    return wait_once();
  } catch (const std::exception&) {
    return outcome::impossible;
  }
}

descriptor_wait::outcome descriptor_wait::until_polled() {
  try {
    begin();
    for (;;) {
      if (const std::optional<outcome> end = take_turn()) return *end;
      pollfd now{fd(), what_.events, 0};
      if (poll(&now, 1, 0) != 0) return outcome::ready;
      if (const outcome end = wait_once(); end != outcome::ready) return end;
    }
  } catch (const std::exception&) {
    return outcome::impossible;
  }
}

}  // namespace strata::preload
