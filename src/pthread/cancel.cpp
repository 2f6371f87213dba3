// SPDX-License-Identifier: Apache-2.0
// Cancellation is deferred: a request ends the wait that the thread is in, or the next one.
#include <cerrno>

#include "os/futex.hpp"
#include "pthread/holding.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"

namespace strata::detail::posix {

void update_asynchronous(record& r) noexcept {
  const bool now = r.cancel_type == PTHREAD_CANCEL_ASYNCHRONOUS && !r.leaving &&
                   r.may_be_cancelled.load(std::memory_order_relaxed);
  if (r.more.heeds_all.load(std::memory_order_relaxed) != now)
    r.more.heeds_all.store(now, std::memory_order_relaxed);
}

namespace {

// A thread from outside that sleeps, after it has been cancelled. Release: with that. Partner:
// sleep_outside() in sleep.cpp.
void tell_sleeper(record& r) noexcept {
  if (!r.is_os_thread) return;
  r.times_cancelled.fetch_add(1, std::memory_order_release);
  os::futex_wake(r.times_cancelled, 1);
}

}  // namespace

}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_cancel(pthread_t thread) {
  if (!is_ours(thread)) return pthread_cancel(thread);
  record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  if (r == self_if_any()) {
    interrupt(*r->body);
    if (r->cancel_type == PTHREAD_CANCEL_ASYNCHRONOUS) act_on_cancellation();
    return 0;
  }
  {
    const holding lock(r->more.lock);
    if (!is_still(*r, thread)) return ESRCH;
    if ((r->life.load(std::memory_order_relaxed) & record::ended) != 0) return 0;
    if (r->body != r) {
      interrupt(*r->body);  // it ends after its record here, for which it needs our lock
      tell_sleeper(*r);
      return 0;
    }
    r->more.interrupted = true;
    waiter* const parked = r->more.parked;
    if (parked != nullptr && parked->heeds_interruption) wake(*parked, unparked::interrupted);
    tell_sleeper(*r);
  }
  return 0;
}

int strata_pthread_setcancelstate(int state, int* before) {
  if (state != PTHREAD_CANCEL_ENABLE && state != PTHREAD_CANCEL_DISABLE) return EINVAL;
  record& r = self();
  const bool could = r.may_be_cancelled.load(std::memory_order_relaxed);
  if (before != nullptr) *before = could ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE;
  r.may_be_cancelled.store(state == PTHREAD_CANCEL_ENABLE, std::memory_order_relaxed);
  update_asynchronous(r);
  if (state == PTHREAD_CANCEL_ENABLE && r.cancel_type == PTHREAD_CANCEL_ASYNCHRONOUS)
    act_on_cancellation();
  return 0;
}

int strata_pthread_setcanceltype(int type, int* before) {
  if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS) return EINVAL;
  record& r = self();
  if (before != nullptr) *before = r.cancel_type;
  r.cancel_type = type;
  update_asynchronous(r);
  if (type == PTHREAD_CANCEL_ASYNCHRONOUS) act_on_cancellation();
  return 0;
}

void strata_pthread_testcancel() { act_on_cancellation(); }
}
