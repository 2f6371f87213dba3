// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "pthread/mutex.hpp"
#include "pthread/record.hpp"
#include "pthread/robust.hpp"
#include "pthread/wait.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/worker.hpp"
#include "threads/waiter.hpp"

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

// What given_away has begun.
void end_unlock(void* mutex) {
  auto* const raw = static_cast<pthread_mutex_t*>(mutex);
  const mutex_view m(raw);
  m.is_robust() ? robust_mutex(raw).release() : m.word().end_unlock();
}

// While one exists the calling thread's cancellation waits, also that of the asynchronous type.
class held_back {
 public:
  held_back() noexcept : r_(self_if_any()) {
    // The other type does not end waits that it should not.
    if (r_ != nullptr && !r_->more.heeds_all.load(std::memory_order_relaxed)) r_ = nullptr;
    if (r_ != nullptr) allow(false);
  }
  ~held_back() {
    if (r_ != nullptr) allow(true);
  }
  held_back(const held_back&) = delete;
  held_back& operator=(const held_back&) = delete;

 private:
  void allow(bool cancellation) noexcept {
    r_->may_be_cancelled.store(cancellation, std::memory_order_relaxed);
    update_asynchronous(*r_);
  }
  record* r_;
};

// The mutex, which is the caller's again when it leaves, whichever way: the handler of a signal may
// end the thread. It may even do so while that waits for the mutex.
class given_away {
 public:
  // `robust_answer` becomes what locking a robust one said; 0 otherwise.
  given_away(pthread_mutex_t* raw, int& robust_answer) noexcept
      : raw_(raw), m_(raw), depth_(m_.depth()), robust_answer_(robust_answer) {
    if (m_.is_robust()) {
      robust_mutex(raw_).retire();
      return;
    }
    if (m_.has_owner()) m_.leave();
    m_.word().begin_unlock();
  }
  ~given_away() noexcept(false) {
    const held_back for_now;
    try {
      relock();
    } catch (...) {
      relock();
      throw;
    }
  }
  given_away(const given_away&) = delete;
  given_away& operator=(const given_away&) = delete;

 private:
  void relock() {
    if (m_.is_robust()) {
      robust_answer_ = robust_mutex(raw_).relock(depth_);
      return;
    }
    (void)m_.lock_word({});
    if (!m_.has_owner()) return;
    m_.take();
    m_.depth() = depth_;
  }
  pthread_mutex_t* const raw_;
  mutex_view m_;
  const unsigned depth_;
  int& robust_answer_;
};

// The mutex is held, and is not when it returns.
unparked wait_shared(condition_state& c, pthread_mutex_t* mutex, const deadline& until) {
  const std::uint32_t seen = c.notified.load(std::memory_order_relaxed);
  const presence here(c.inside);
  end_unlock(mutex);
  polled_wait between("condition variable of several processes");
  unparked why = unparked::woken;
  while (c.notified.load(std::memory_order_acquire) == seen) {
    why = between.pause(until, is_cancellable());
    if (why == unparked::interrupted || until.has_passed()) break;
    why = unparked::woken;
  }
  return why;
}

int wait(pthread_cond_t* raw, pthread_mutex_t* mutex, const deadline& until) {
  if (const int error = until.check()) return error;
  mutex_view m(mutex);
  if (m.kind() == mutex_view::destroyed) return EINVAL;
  if (m.is_robust() ? !robust_mutex(mutex).is_mine() : m.has_owner() && !m.is_mine()) return EPERM;
  if (this_worker().owner != nullptr) require_stack();  // before anything is given up
  act_on_cancellation();
  const kept_errno keep;
  condition_state& c = state_of(raw);
  // Set with the mutex held: who changes under it what we wait for sees it, and then finds us
  // queued. Partner: notify().
  c.used.store(1, std::memory_order_seq_cst);
  int robust_answer = 0;
  // Who looks around every few milliseconds comes back to its place: otherwise two threads that are
  // woken, and come back before it, could hand a lock to each other for ever.
  record* const r = self_if_any();
  std::uint64_t came = r != nullptr && r->given_up == raw ? r->came_to_it : 0;
  const unparked why = [&] {
    const given_away mutex_for_now(mutex, robust_answer);
    return c.shared != 0 ? wait_shared(c, mutex, until)
                         : park_or_give_way(until.bound({.what = "condition variable",
                                                         .address = &c,
                                                         .then = &end_unlock,
                                                         .then_argument = mutex,
                                                         .interruptible = is_cancellable(),
                                                         .came = &came}));
  }();
  if (r != nullptr) {
    r->given_up = why == unparked::timed_out ? raw : nullptr;
    r->came_to_it = came;
  }
  // The condition variable may be gone. The mutex is ours again (but for a robust one that is not
  // recoverable): handlers may rely on it.
  if (why == unparked::interrupted) act_on_cancellation();
  if (robust_answer != 0) return robust_answer;
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
  if (c.shared == 0) return is_awaited(&c) ? EBUSY : 0;
  polled_wait between("last waiter to leave a condition variable");
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
