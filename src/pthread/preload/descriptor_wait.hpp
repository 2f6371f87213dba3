// SPDX-License-Identifier: Apache-2.0
// A thread that has to wait for a descriptor is suspended until it is ready, and calls the kernel
// then. The descriptor's flags stay as they are, because they are other processes', too. So a call
// is made as one that does not wait where there is such a call (MSG_DONTWAIT, RWF_NOWAIT), before
// and after a wait: what is at hand costs what it did. Where there is none, the descriptor is asked
// with poll(), and those of us who want the same of it take turns.
#pragma once
#include <cerrno>
#include <cstdint>
#include <optional>

#include "pthread/preload/copies.hpp"
#include "strata/detail/parking.hpp"
#include "threads/errno_here.hpp"
#include "threads/polling_backoff.hpp"
#include "threads/turns.hpp"

namespace strata::preload {

// Whether the caller is a thread that can be suspended, and has to be so that others go on. If it
// is one of ours this is a point of cancellation, but in a handler: may not return. Takes no locks
// where it returns, so a handler may write to a descriptor that is ready wherever it interrupts.
[[nodiscard]] bool can_be_suspended();

// While one exists, the calling thread waits for descriptors in the kernel.
class not_suspended {
 public:
  not_suspended();
  ~not_suspended();
  not_suspended(const not_suspended&) = delete;
  not_suspended& operator=(const not_suspended&) = delete;

 private:
  void* const thread_;
};

// The descriptor has O_NONBLOCK, or is none: then errno says so.
[[nodiscard]] bool never_waits(int fd) noexcept;

struct wait_for {
  int fd;
  short events;             // of poll()
  int timeout_option = 0;   // of the socket, how long it waits: SO_RCVTIMEO, SO_SNDTIMEO
  bool after_part = false;  // of what the caller wants to be done
};

// As poll() has it. errno stays as it is.
[[nodiscard]] bool is_ready(const wait_for& what) noexcept;

// By a call that does not wait, beside EAGAIN: it has done some, and there is more to do.
inline constexpr int more_to_do = ERESTART;

class descriptor_wait {
 public:
  enum class outcome {
    ready,       // perhaps
    late,        // the time for it is over
    handled,     // a handler has run, after which the call is not begun again
    impossible,  // there is no memory, or no kernel thread, to wait with
  };

  explicit descriptor_wait(const wait_for& what) : what_(what), has_moved_(what.after_part) {}

  // Suspends the calling thread until the call may be made again, and acts on its cancellation.
  outcome until_ready();
  // The same for a call that blocks when made too early: nobody else of us makes it meanwhile.
  outcome until_polled();
  // The call has done something.
  void progressed() noexcept {
    in_vain_.begin_anew();
    has_moved_ = true;
  }
  // What to make the call with.
  [[nodiscard]] int fd() const noexcept {
    return copy_ && copy_->is_there() ? copy_->number() : what_.fd;
  }

 private:
  void hold() noexcept;
  [[nodiscard]] int number_for_turns() const noexcept {
    const int shared = copy_ ? copy_->number_for_turns() : descriptor_copy::none;
    return shared != descriptor_copy::none ? shared : what_.fd;
  }
  [[nodiscard]] bool has_many_ends() const noexcept;
  void begin();
  std::optional<outcome> take_turn();
  outcome wait_once();
  std::optional<outcome> judge(detail::unparked why);

  const wait_for what_;
  std::optional<descriptor_copy> copy_;
  std::optional<detail::descriptor_turn> turn_;
  std::int64_t deadline_ns_ = detail::parking::never;
  detail::polling_backoff in_vain_{detail::polling_backoff::looks_in_vain};
  bool gave_way_ = false;
  bool has_moved_;
  bool takes_turns_ = true;
  bool begun_ = false;
};

// Makes `attempt(fd)`, which does not wait, until it says something else than EAGAIN or more_to_do;
// once, if the descriptor never waits. `in_kernel(fd)` waits there.
template <class Attempt, class InKernel>
auto call_when_ready(const wait_for& what, const Attempt& attempt, const InKernel& in_kernel)
    -> decltype(attempt(0)) {
  const auto has_to_wait = [] {
    const int error = detail::errno_here();
    return error == EAGAIN || error == more_to_do;
  };
  const int error_before = detail::errno_here();
  const auto at_once = attempt(what.fd);
  if (at_once >= 0 || !has_to_wait()) return at_once;
  const bool has_moved = detail::errno_here() == more_to_do;
  if (never_waits(what.fd)) return at_once;
  descriptor_wait wait(what);
  if (has_moved) wait.progressed();
  for (;;) {
    switch (wait.until_ready()) {
      case descriptor_wait::outcome::ready:
        break;
      case descriptor_wait::outcome::late:
        return detail::fail_with(EAGAIN);
      case descriptor_wait::outcome::handled:
        return detail::fail_with(EINTR);
      case descriptor_wait::outcome::impossible:
        return in_kernel(wait.fd());
    }
    const auto later = attempt(wait.fd());
    if (later >= 0) detail::set_errno_here(error_before);
    if (later >= 0 || !has_to_wait()) return later;
    if (detail::errno_here() == more_to_do) wait.progressed();
  }
}

// Makes `call(fd)`, which may wait, when it does not have to. `at_once`: others who see that it is
// ready may do the same.
template <class Call>
auto call_when_polled(const wait_for& what, const Call& call, bool at_once = false)
    -> decltype(call(0)) {
  if (never_waits(what.fd) || (at_once && is_ready(what))) return call(what.fd);
  const int error_before = detail::errno_here();
  descriptor_wait wait(what);
  switch (wait.until_polled()) {
    case descriptor_wait::outcome::late:
      return detail::fail_with(EAGAIN);
    case descriptor_wait::outcome::handled:
      return detail::fail_with(EINTR);
    default: {
      const auto answer = call(wait.fd());
      if (answer >= 0) detail::set_errno_here(error_before);
      return answer;
    }
  }
}

}  // namespace strata::preload
