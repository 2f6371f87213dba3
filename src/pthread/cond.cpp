// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "pthread/mutex.hpp"
#include "pthread/wait.hpp"

namespace strata::detail::posix {
namespace {

// In place of what the C library keeps in a pthread_cond_t; all zero is a static initialiser.
struct condition_state {
  std::atomic<std::uint32_t> used;  // somebody has waited here
  clockid_t clock;
  // Of one that processes share: waiters look whether `notified` has changed, all of them.
  std::uint32_t shared;
  std::atomic<std::uint32_t> notified;
  std::atomic<std::uint32_t> inside;  // look at it
};
static_assert(sizeof(condition_state) <= sizeof(pthread_cond_t) && CLOCK_REALTIME == 0);

condition_state& state_of(pthread_cond_t* c) noexcept {
  return *reinterpret_cast<condition_state*>(c);
}

void unlock(void* word) { static_cast<word_lock*>(word)->unlock(); }

// The mutex is held, and is not when it returns.
unparked wait_shared(condition_state& c, mutex_view m, const deadline& until) {
  const std::uint32_t seen = c.notified.load(std::memory_order_relaxed);
  c.inside.fetch_add(1, std::memory_order_relaxed);
  m.word().unlock();
  patience between("condition variable of several processes");
  unparked why = unparked::woken;
  while (c.notified.load(std::memory_order_acquire) == seen) {
    why = between.pause(until, is_cancellable());
    if (why == unparked::interrupted || until.has_passed()) break;
    why = unparked::woken;
  }
  // The last access. Partner: strata_pthread_cond_destroy().
  c.inside.fetch_sub(1, std::memory_order_release);
  return why;
}

int wait(pthread_cond_t* raw, pthread_mutex_t* mutex, const deadline& until) {
  if (const int error = until.check()) return error;
  mutex_view m(mutex);
  if (m.kind() == mutex_view::destroyed) return EINVAL;
  if (m.has_owner() && !m.is_mine()) return EPERM;
  act_on_cancellation();
  const kept_errno keep;
  condition_state& c = state_of(raw);
  // Set with the mutex held: who changes under it what we wait for sees it, and then finds us
  // queued. Partner: notify().
  c.used.store(1, std::memory_order_seq_cst);
  const unsigned depth = m.depth();
  if (m.has_owner()) m.leave();
  const unparked why = c.shared != 0 ? wait_shared(c, m, until)
                                     : park({.what = "condition variable",
                                             .address = &c,
                                             .then = &unlock,
                                             .then_argument = &m.word(),
                                             .deadline_ns = until.to_ns(),
                                             .interruptible = is_cancellable()});
  // The condition variable may be gone.
  (void)m.lock_word({});
  if (m.has_owner()) {
    m.take();
    m.depth() = depth;
  }
  // The mutex is ours again: handlers may rely on it.
  if (why == unparked::interrupted) act_on_cancellation();
  // A clock that was set back meanwhile: a wake-up without a reason is allowed.
  return why == unparked::timed_out && until.has_passed() ? ETIMEDOUT : 0;
}

int notify(pthread_cond_t* raw, unsigned count) noexcept {
  condition_state& c = state_of(raw);
  if (c.shared != 0) {
    c.notified.fetch_add(1, std::memory_order_release);
    return 0;
  }
  if (c.used.load(std::memory_order_seq_cst) != 0) unpark(&c, count);
  return 0;
}

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_cond_init(pthread_cond_t* cond, const pthread_condattr_t* attributes) {
  clockid_t clock = CLOCK_REALTIME;
  int shared = PTHREAD_PROCESS_PRIVATE;
  if (attributes != nullptr) {
    if (const int error = pthread_condattr_getpshared(attributes, &shared)) return error;
    pthread_condattr_getclock(attributes, &clock);
  }
  std::memset(static_cast<void*>(cond), 0, sizeof *cond);
  state_of(cond).clock = clock;
  state_of(cond).shared = shared == PTHREAD_PROCESS_SHARED ? 1 : 0;
  return 0;
}

// Who was woken touches it no more, but for one that processes share.
int strata_pthread_cond_destroy(pthread_cond_t* cond) {
  const condition_state& c = state_of(cond);
  if (c.shared == 0) return 0;
  patience between("last waiter to leave a condition variable");
  while (c.inside.load(std::memory_order_acquire) != 0) (void)between.pause({}, false);
  return 0;
}

int strata_pthread_cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex) {
  return wait(cond, mutex, {});
}

int strata_pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex,
                                  const timespec* until) {
  return wait(cond, mutex, {state_of(cond).clock, until});
}

int strata_pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until) {
  return wait(cond, mutex, {clock, until});
}

int strata_pthread_cond_signal(pthread_cond_t* cond) { return notify(cond, 1); }
int strata_pthread_cond_broadcast(pthread_cond_t* cond) { return notify(cond, UINT32_MAX); }
}
