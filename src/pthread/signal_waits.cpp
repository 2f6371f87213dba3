// SPDX-License-Identifier: Apache-2.0
// Waits for signals: for what is blocked, which is taken without a handler, and for a handler.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "os/clock.hpp"
#include "os/no_signals.hpp"
#include "pthread/held_signals.hpp"
#include "pthread/holding.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "strata/blocking.hpp"
#include "strata/pthread.h"

namespace strata::detail::posix {
namespace {

// A wait for one of a set, as the functions of that kind have it.
struct signal_wait {
  record& who;
  const sigset_t wanted;
  const std::int64_t deadline_ns;
  const bool ends_by_handler;
  siginfo_t info{};
  std::uint32_t handlers_before = 0;

  // What keeps it from going on: its thread is cancelled, or a handler has run for it.
  [[nodiscard]] bool is_over() const noexcept {
    return has_to_leave(who) ||
           (ends_by_handler && who.handlers_run.load(std::memory_order_relaxed) != handlers_before);
  }
};

// With its record's lock: what is its own, or held for all. 0: nothing.
int take_what_is_there(signal_wait& w) noexcept {
  const int own = take_pending(w.who, w.wanted, w.info);
  return own != 0 ? own : take_held(w.wanted, w.info);
}

// In the kernel, which knows nothing of what ends the wait for a lightweight thread, and may have
// had no room for what was forwarded to it. 0: none came.
int await_in_kernel(signal_wait& w) {
  constexpr std::int64_t look_again_ns = 20'000'000;
  for (;;) {
    const std::int64_t left_ns = std::max<std::int64_t>(
        w.deadline_ns == parking::never ? INT64_MAX : w.deadline_ns - os::now_ns(), 0);
    const auto ns = static_cast<long>(std::min(left_ns, look_again_ns));
    const timespec slice{0, ns};
    const int number = sigtimedwait(&w.wanted, &w.info, &slice);
    if (number > 0) return number;
    if (!w.who.is_os_thread) {
      const holding lock(w.who.more.lock);
      if (const int kept = take_pending(w.who, w.wanted, w.info)) return kept;
    }
    const bool is_handled_here = w.who.is_os_thread && w.ends_by_handler && errno == EINTR;
    if (is_handled_here) w.handlers_before = w.who.handlers_run.load(std::memory_order_relaxed) - 1;
    if (is_handled_here || w.is_over() || left_ns <= look_again_ns) return 0;
  }
}

// On the OS thread that has waited for r: what has been forwarded to it since is r's again. With
// r.more.lock.
void take_back(record& r) {
  constexpr timespec at_once{0, 0};
  for (int number = 1; number < NSIG; ++number) {
    if (!has_signal(r.forwarded, number)) continue;
    const sigset_t one = only(number);
    siginfo_t info;
    // Those for the OS thread come before those for the process. The C library does not tell which.
    while (syscall(SYS_rt_sigtimedwait, &one, &info, &at_once, (NSIG - 1) / 8) == number) {
      if (info.si_code != SI_TKILL && (info.si_code != SI_QUEUE || info.si_pid != getpid())) {
        // With all that the sender has said, if the kernel lets us.
        if (syscall(SYS_rt_sigqueueinfo, getpid(), number, &info) != 0) kill(getpid(), number);
        break;
      }
      (void)add_pending(r, info);
      if (!has_signal(r.blocked, number)) r.more.signalled.store(true, std::memory_order_relaxed);
    }
  }
}

// On an OS thread that waits for nothing else; meanwhile our worker goes on.
int await_elsewhere(signal_wait& w) {
  record& r = w.who;
  auto wait_there = [&] {
    {
      const holding lock(r.more.lock);
      // Sent to us since we looked.
      if (const int early = take_what_is_there(w)) return early;
      r.waits_for_signal = true;
      r.signal_waiter = pthread_self();
      r.awaited = w.wanted;
      sigemptyset(&r.forwarded);
    }
    const int found = await_in_kernel(w);
    {
      const holding lock(r.more.lock);
      r.waits_for_signal = false;
      take_back(r);
    }
    return found;
  };
  blocking_function<decltype(wait_there)> call(wait_there);
  // What the process has pending is for us to take, not for a handler.
  call.takes_no_signals = true;
  call_blocking(call);
  return call.out.take();
}

// The number, or 0: it was late, or a handler has run. Its cancellation does not return.
int await(signal_wait& w) {
  record& r = w.who;
  int found = 0;
  if (r.is_os_thread) {
    found = take_held(w.wanted, w.info);
    if (found == 0) found = await_in_kernel(w);
  } else {
    {
      const holding lock(r.more.lock);
      found = take_what_is_there(w);
    }
    const timespec at_once{0, 0};
    if (found == 0 && w.deadline_ns <= os::now_ns()) {
      found = std::max(sigtimedwait(&w.wanted, &w.info, &at_once), 0);
    } else if (found == 0) {
      found = await_elsewhere(w);
    }
  }
  // A signal that has been taken is not lost to a cancellation that comes at the same time.
  if (found == 0) act_on_cancellation();
  if (r.more.signalled.load(std::memory_order_relaxed)) deliver_signals(r);
  return found;
}

// From where a wait for a handler begins until it ends the thread has another mask, and what comes
// is left to the taker: nothing is handled between the mask and the wait.
class mask_of_wait {
 public:
  mask_of_wait(record& r, const sigset_t& mask) : r_(r) {
    change_mask(r_, SIG_SETMASK, &mask, &own_);
  }
  ~mask_of_wait() noexcept(false) { change_mask(r_, SIG_SETMASK, &own_, nullptr); }
  mask_of_wait(const mask_of_wait&) = delete;
  mask_of_wait& operator=(const mask_of_wait&) = delete;

 private:
  record& r_;
  sigset_t own_;
};

// While one exists handlers that run in the thread's place end its wait, also where that has not
// begun yet. Partner: has_handled() in signal_offers.cpp.
class handler_awaited {
 public:
  explicit handler_awaited(record& r) noexcept : r_(r), was_(set(true)) {}
  ~handler_awaited() { (void)set(was_); }
  handler_awaited(const handler_awaited&) = delete;
  handler_awaited& operator=(const handler_awaited&) = delete;

 private:
  bool set(bool awaits) noexcept {
    const holding lock(r_.more.lock);
    return std::exchange(r_.awaits_handler, awaits);
  }
  record& r_;
  const bool was_;
};

int await_handler(record& r, std::uint32_t before) {
  const handler_awaited here(r);
  const char nobody_wakes = 0;
  for (;;) {
    if (r.more.signalled.load(std::memory_order_relaxed)) deliver_signals(r);
    if (r.handlers_run.load(std::memory_order_relaxed) != before) break;
    const unparked why = park_or_give_way({.what = "a signal",
                                           .address = &nobody_wakes,
                                           .interruptible = is_cancellable(),
                                           .ends_by_signal = true});
    if (why == unparked::interrupted) act_on_cancellation();
  }
  set_errno_here(EINTR);
  return -1;
}

// Of a thread from outside. The kernel runs handlers in no other moment than within its call, which
// says that one has run; of cancellation it knows nothing. Null: the mask stays as it is.
int await_handler_outside(record& r, const sigset_t* mask) {
  constexpr timespec look_again{0, 20'000'000};
  for (;;) {
    act_on_cancellation();
    const os::no_signals between;
    while (!has_to_leave(r)) {
      if (ppoll(nullptr, 0, &look_again, mask != nullptr ? mask : &between.before()) < 0) return -1;
    }
  }
}

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_sigwait(const sigset_t* set, int* number) {
  act_on_cancellation();
  const kept_errno keep;
  signal_wait w{self(), *set, parking::never, false};
  int found = 0;
  while (found == 0) found = await(w);
  *number = found;
  return 0;
}

int strata_sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  if (timeout != nullptr &&
      (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= 1'000'000'000)) {
    set_errno_here(EINVAL);
    return -1;
  }
  act_on_cancellation();
  std::int64_t deadline_ns = parking::never;
  if (timeout != nullptr) {
    const timespec end = from_now(*timeout);
    deadline_ns = deadline{CLOCK_MONOTONIC, &end}.to_ns();
  }
  const int error_before = errno_here();
  record& r = self();
  signal_wait w{r, *set, deadline_ns, true, {}, r.handlers_run.load(std::memory_order_relaxed)};
  const int found = await(w);
  if (found != 0) {
    if (info != nullptr) *info = w.info;
    set_errno_here(error_before);
    return found;
  }
  set_errno_here(r.handlers_run.load(std::memory_order_relaxed) != w.handlers_before ? EINTR
                                                                                     : EAGAIN);
  return -1;
}

int strata_sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  return strata_sigtimedwait(set, info, nullptr);
}

int strata_sigsuspend(const sigset_t* mask) {
  if (is_unknown_outside()) return sigsuspend(mask);
  act_on_cancellation();
  if (is_outside()) return await_handler_outside(self(), mask);
  const uninterrupted guard;
  record& r = self();
  const std::uint32_t before = r.handlers_run.load(std::memory_order_relaxed);
  const mask_of_wait wait(r, *mask);
  return await_handler(r, before);
}

int strata_pause() {
  if (is_unknown_outside()) return pause();
  act_on_cancellation();
  if (is_outside()) return await_handler_outside(self(), nullptr);
  const uninterrupted guard;
  record& r = self();
  return await_handler(r, r.handlers_run.load(std::memory_order_relaxed));
}
}
