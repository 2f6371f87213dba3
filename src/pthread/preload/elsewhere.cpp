// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/elsewhere.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "pthread/preload/asked_handlers.hpp"
#include "pthread/preload/own_signal.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"

namespace strata::preload {

namespace posix = detail::posix;

void kernel_thread::begin() noexcept {
  begin_own_signal();
  // Relaxed: who is not seen yet is looked for again.
  number_.store(static_cast<pid_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
  let_calls_end(true);
  before_ = now();
}

void kernel_thread::end() noexcept {
  let_calls_end(false);
  number_.store(0, std::memory_order_relaxed);
}

kernel_thread::comings kernel_thread::now() noexcept {
  return {endings_of_calls_here(), handlers_called_here()};
}

bool kernel_thread::is_stray() noexcept {
  const comings since = std::exchange(before_, now());
  return !has_to_end_.load(std::memory_order_relaxed) && before_.endings != since.endings &&
         before_.handlers == since.handlers;
}

bool kernel_thread::disturb(detail::unparked why) noexcept {
  bool has_to = has_to_end_.load(std::memory_order_relaxed) || why == detail::unparked::interrupted;
  if (why == detail::unparked::signalled) {
    const posix::record* const r = posix::self_if_any();
    has_to = has_to || what_ == ended_by::handlers || r == nullptr || !r->restarts;
  }
  has_to_end_.store(has_to, std::memory_order_relaxed);
  const pid_t number = number_.load(std::memory_order_relaxed);
  if (has_to && number != 0) end_call_of(number);
  return has_to;
}

void act_on_what_ended_it() {
  const posix::kept_errno keep;
  posix::act_on_cancellation();
}

}  // namespace strata::preload
