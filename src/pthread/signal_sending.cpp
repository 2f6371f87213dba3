// SPDX-License-Identifier: Apache-2.0
// Signals from one thread to another, or to itself.
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "pthread/holding.hpp"
#include "pthread/put_off.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"

namespace strata::detail::posix {
namespace {

using sent_value = std::optional<sigval>;

int send_to_os_thread(const record& r, int number, const sent_value& value) {
  return value ? pthread_sigqueue(r.os_thread, number, *value) : pthread_kill(r.os_thread, number);
}

int send(pthread_t thread, int number, const sent_value& value) {
  if (number < 0 || number >= NSIG) return EINVAL;
  record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  const kept_errno keep;
  const bool own = r == self_if_any();
  if (own) end_left_handlers(*r);
  if (outside_section::is_here()) [[unlikely]] {
    if (number == 0) return 0;
    // Its own, the kernel delivers here and now.
    if (own) return send_to_os_thread(*r, number, value);
    return put_off_sending(thread, number, value ? &*value : nullptr) ? 0 : EAGAIN;
  }
  siginfo_t info = about_signal(number, value ? &*value : nullptr);
  bool for_process = false;
  {
    const holding lock(r->more.lock);
    if (!is_still(*r, thread)) return ESRCH;
    if ((r->life.load(std::memory_order_relaxed) & record::ended) != 0) return 0;
    if (number == 0) return 0;
    if (r->is_os_thread && !own) return send_to_os_thread(*r, number, value);
    if (r->waits_for_signal && has_signal(r->awaited, number))
      return forward_to_waiter(*r, info) ? 0 : EAGAIN;
    if (has_signal(r->blocked, number) && !r->is_os_thread)
      return add_pending(*r, info) ? 0 : EAGAIN;
    struct sigaction how {};
    if (sigaction(number, nullptr, &how) != 0) return EINVAL;
    const bool handled = how.sa_handler != SIG_DFL && how.sa_handler != SIG_IGN;
    if (handled && !own && r->body == r) {
      if (!add_pending(*r, info)) return EAGAIN;
      r->more.signalled.store(true, std::memory_order_relaxed);
      any_was_sent.store(true, std::memory_order_relaxed);
      if (r->more.parked != nullptr) wake(*r->more.parked, unparked::signalled);
      return 0;
    }
    for_process = handled && !own;
  }
  // Without the lock: the handler may run here and now.
  if (for_process) return kill(getpid(), number) == 0 ? 0 : EINVAL;
  if (own && r->is_os_thread) return send_to_os_thread(*r, number, value);
  // Its own; or what concerns the process, whoever gets it.
  if (!own) return raise_here(info);
  // As natively what has interrupted the thread ends first. Acquire: with what that handler did.
  // Partner: has_handled() in signal_offers.cpp.
  while (r->handled_elsewhere.load(std::memory_order_acquire) &&
         (r->blocked_elsewhere.load(std::memory_order_relaxed) & signal_bit(number)) != 0)
    (void)give_way(parking::never);
  const kept_mask mask = keep_mask(*r);
  const int error = raise_here(info);
  restore_mask(*r, mask);
  return error;
}

}  // namespace

void send_late(pthread_t thread, int number, const sigval* value) {
  (void)send(thread, number, value != nullptr ? sent_value(*value) : std::nullopt);
}

}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_kill(pthread_t thread, int number) {
  return is_ours(thread) ? send(thread, number, {}) : pthread_kill(thread, number);
}

int strata_pthread_sigqueue(pthread_t thread, int number, union sigval value) {
  return is_ours(thread) ? send(thread, number, value) : pthread_sigqueue(thread, number, value);
}

int strata_raise(int number) {
  if (this_worker().owner == nullptr) return raise(number);
  const int error = strata_pthread_kill(strata_pthread_self(), number);
  if (error == 0) return 0;
  set_errno_here(error);
  return -1;
}
}
