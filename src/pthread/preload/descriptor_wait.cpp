// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/descriptor_wait.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unwind.h>

#include <algorithm>
#include <exception>

#include "os/clock.hpp"
#include "pthread/fork.hpp"
#include "pthread/preload/native.hpp"
#include "pthread/record.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "sched/place.hpp"
#include "sched/waiting_stacks.hpp"
#include "strata/detail/join.hpp"
#include "threads/reactor.hpp"
#include "threads/socket_times.hpp"

namespace strata::preload {

using detail::unparked;
namespace posix = detail::posix;

namespace {

// The innermost handler may have interrupted whatever there is: malloc(), or the runtime.
bool is_in_handler() noexcept {
  bool found = false;
  const auto look = [](_Unwind_Context* at, void* answer) {
    int is_signal = 0;
    (void)_Unwind_GetIPInfo(at, &is_signal);
    *static_cast<bool*>(answer) |= is_signal != 0;
    return is_signal != 0 ? _URC_END_OF_STACK : _URC_NO_REASON;
  };
  (void)_Unwind_Backtrace(look, &found);
  return found;
}

// As act_on_cancellation(), where there may be nothing to wait for: not in a handler, nor in the
// child of a vfork(), which has what its maker has been sent.
void heed_what_has_come(const posix::record& r) {
  if (!r.more.signalled.load(std::memory_order_relaxed) && !posix::has_to_leave(r) &&
      !posix::has_left_handlers(r)) [[likely]]
    return;
  if (!is_in_handler() && !posix::is_in_child_of_vfork()) posix::act_on_cancellation();
}

}  // namespace

bool can_be_suspended() {
  if (is_native()) return false;
  const detail::worker& w = detail::this_worker();
  if (w.owner == nullptr || static_cast<const detail::place&>(w).current == nullptr) return false;
  const posix::record* const r = posix::self_if_any();
  if (r != nullptr) {
    if (r->waits_in_kernel != 0) return false;
    heed_what_has_come(*r);
  }
  return posix::stops_others();
}

// Who has no record is not suspended.
not_suspended::not_suspended() : thread_(posix::self_if_any()) {
  if (thread_ != nullptr) ++static_cast<posix::record*>(thread_)->waits_in_kernel;
}
not_suspended::~not_suspended() {
  if (thread_ != nullptr) --static_cast<posix::record*>(thread_)->waits_in_kernel;
}

bool never_waits(int fd) noexcept {
  const int flags = fcntl(fd, F_GETFL);
  return flags < 0 || (flags & O_NONBLOCK) != 0;
}

bool is_ready(const wait_for& what) noexcept {
  const int error = detail::errno_here();
  pollfd now{what.fd, what.events, 0};
  const bool is = poll(&now, 1, 0) != 0;
  detail::set_errno_here(error);
  return is;
}

void descriptor_wait::hold() noexcept {
  if (copy_) return;
  takes_turns_ = !has_many_ends();
  copy_.emplace(what_.fd, !takes_turns_             ? descriptor_copy::use::alone
                          : what_.events == POLLOUT ? descriptor_copy::use::to_write
                                                    : descriptor_copy::use::to_read);
}

// One who sends datagrams may have room at the other end, and the next one not.
bool descriptor_wait::has_many_ends() const noexcept {
  if (what_.timeout_option != SO_SNDTIMEO) return false;
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(what_.fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM;
}

// The file is held before anything that takes time, and known by its copy: what is opened with the
// number meanwhile is another one.
void descriptor_wait::begin() {
  if (begun_) return;
  hold();
  if (what_.timeout_option != 0)
    deadline_ns_ = detail::own_deadline_ns(what_.fd, what_.timeout_option);
  if (takes_turns_ && !turn_) turn_.emplace(fd(), what_.events == POLLOUT, number_for_turns());
  begun_ = true;
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
      // As the kernel has it: a wait for a time, or after a part, is not begun again.
      const posix::record* const r = posix::self_if_any();
      if (has_moved_ || deadline_ns_ != detail::parking::never || r == nullptr || !r->restarts)
        return outcome::handled;
      break;
    }
    default:
      return outcome::ready;
  }
  return {};
}

std::optional<descriptor_wait::outcome> descriptor_wait::take_turn() {
  while (turn_ && !turn_->is_mine()) {
    const std::optional<outcome> end = judge(
        turn_->take(deadline_ns_, {.interruption = posix::is_cancellable(), .signals = true}));
    if (end && *end != outcome::ready) return end;
  }
  return {};
}

// With the turn, if it takes turns.
descriptor_wait::outcome descriptor_wait::wait_once() {
  // The kernel may call ready what is not for this call: a datagram socket that is not connected,
  // whose addressee has no room.
  if (const std::int64_t pause_ns = in_vain_.next_pause_ns(); pause_ns != 0) {
    const char nobody_wakes = 0;
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
    // Until it has moved something the call may as well begin only when it comes back.
    if (has_moved_) hold();
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
    // A socket is known without a copy, and need not be held where nothing takes time.
    if (what_.timeout_option != 0 && !turn_) {
      turn_.emplace(what_.fd, what_.events == POLLOUT);
      if (turn_->try_take() && is_ready(what_)) return outcome::ready;
    }
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
