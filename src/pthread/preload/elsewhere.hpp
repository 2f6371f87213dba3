// SPDX-License-Identifier: Apache-2.0
// Waiting in the kernel without a worker: a kernel thread does it in the calling thread's place,
// and takes no signals. What ends the wait for the calling thread ends it there.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "os/no_signals.hpp"
#include "pthread/wait.hpp"
#include "strata/blocking.hpp"
#include "threads/errno_here.hpp"

namespace strata::preload {

// What ends a wait, beside what it is for, and beside cancellation where the call is a point of it.
enum class ended_by : std::uint8_t {
  handlers,              // by any
  handlers_not_restart,  // that have no SA_RESTART
};

// The kernel thread that is in a call.
class kernel_thread {
 public:
  explicit kernel_thread(ended_by what) noexcept : what_(what) {}

  // By itself.
  void begin() noexcept;
  void end() noexcept;

  // By the thread for which it waits, which something has disturbed: interrupts the call, if it has
  // to end. It may not have begun, or begin again: true if this should be done once more.
  bool disturb(detail::unparked why) noexcept;
  // By itself, when a call was interrupted: that was meant for another one, which has ended, and no
  // handler has run in this one.
  [[nodiscard]] bool is_stray() noexcept;

 private:
  // Of the kernel thread: how often it has been told to end a call, and has run a handler.
  struct comings {
    std::uint32_t endings;
    std::uint32_t handlers;
  };
  static comings now() noexcept;

  const ended_by what_;
  // Relaxed: the kernel thread asks when it has been interrupted. Partner: is_stray().
  std::atomic<bool> has_to_end_{false};
  comings before_{};  // the call; by itself
  std::atomic<pid_t> number_{0};
};

// By who comes back from a wait that was interrupted: may not return.
void act_on_what_ended_it();

// What f() returns, and its errno. Where there is no kernel thread for it, the caller's worker
// stops.
template <class F>
auto elsewhere(const F& f, ended_by what = ended_by::handlers_not_restart, bool is_point = true) {
  kernel_thread there(what);
  auto without_signals = [&] {
    const os::no_signals here;
    there.begin();
    auto answer = f();
    while (answer < 0 && detail::errno_here() == EINTR && there.is_stray()) answer = f();
    there.end();
    return answer;
  };
  struct call_there : detail::blocking_function<decltype(without_signals)> {
    call_there(decltype(without_signals)& f_there, kernel_thread& t)
        : detail::blocking_function<decltype(without_signals)>(f_there), thread(t) {}
    kernel_thread& thread;
  } call(without_signals, there);
  call.takes_no_signals = true;
  // Who has put its cancellation off, or leaves already, waits as ever.
  call.interruptible = is_point && detail::posix::is_cancellable();
  call.disturbed = [](detail::blocking_call& c, detail::unparked why) {
    return static_cast<call_there&>(c).thread.disturb(why);
  };
  detail::call_blocking(call);
  const auto answer = call.out.take();
  if (is_point && answer < 0 && detail::errno_here() == EINTR) act_on_what_ended_it();
  return answer;
}

}  // namespace strata::preload
