// SPDX-License-Identifier: Apache-2.0
// Protocols of priorities are taken and told. As priorities have no effect here, whose a mutex
// raises makes no difference; what is left of a ceiling is that who is above it gets an error.
#include "pthread/mutex.hpp"

#include <sched.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "pthread/fork.hpp"
#include "pthread/on_worker.hpp"
#include "pthread/record.hpp"
#include "pthread/robust.hpp"

namespace strata::detail::posix {
namespace {

int own_priority() noexcept {
  const record* const r = self_if_any();
  if (r != nullptr && !r->is_os_thread) return r->priority.load(std::memory_order_relaxed);
  int policy = SCHED_OTHER;
  sched_param own{};
  pthread_getschedparam(pthread_self(), &policy, &own);
  return own.sched_priority;
}

bool is_ceiling(int priority) noexcept {
  return priority >= sched_get_priority_min(SCHED_FIFO) &&
         priority <= sched_get_priority_max(SCHED_FIFO);
}

// 0: go on and lock; everything else is the answer, `again` that of a recursive mutex, but for
// `other`: robust, or nothing that can be locked.
constexpr int again = -1;
constexpr int other = -2;
int before_lock(mutex_view m, int kind) {
  switch (kind) {
    case PTHREAD_MUTEX_NORMAL:
    case PTHREAD_MUTEX_ADAPTIVE_NP:
      return 0;
    case PTHREAD_MUTEX_RECURSIVE:
      if (!m.is_mine()) return 0;
      if (m.depth() == UINT_MAX) return EAGAIN;
      ++m.depth();
      return again;
    case PTHREAD_MUTEX_ERRORCHECK:
      return m.is_mine() ? EDEADLK : 0;
    default:
      if (!m.has_ceiling()) return other;
      return own_priority() > m.ceiling() ? EINVAL : before_lock(m, m.type());
  }
}

int lock_other(mutex_view m, pthread_mutex_t* raw, const deadline& until) {
  return m.is_robust() ? robust_mutex(raw).lock(until) : EINVAL;
}

void after_lock(mutex_view m) noexcept {
  if (!m.has_owner()) return;
  m.take();
  m.depth() = 1;
}

int lock_as(int kind, pthread_mutex_t* raw, const deadline& until) {
  mutex_view m(raw);
  if (const int answer = before_lock(m, kind)) {
    if (answer == other) return lock_other(m, raw, until);
    return answer == again ? 0 : answer;
  }
  if (!m.word().try_lock()) [[unlikely]] {
    if (const int error = until.check()) return error;
    const kept_errno keep;
    const bool has_locked = is_in_fork() && attempt_on_worker([&] { return m.word().try_lock(); });
    if (!has_locked && !m.lock_word(until)) return ETIMEDOUT;
  }
  after_lock(m);
  return 0;
}

int lock(pthread_mutex_t* raw, const deadline& until) {
  return lock_as(mutex_view(raw).kind(), raw, until);
}

int unlock_as(int kind, pthread_mutex_t* raw) {
  mutex_view m(raw);
  switch (kind) {
    case PTHREAD_MUTEX_NORMAL:
    case PTHREAD_MUTEX_ADAPTIVE_NP:
      break;
    case PTHREAD_MUTEX_RECURSIVE:
    case PTHREAD_MUTEX_ERRORCHECK:
      if (!m.is_mine()) return EPERM;
      if (--m.depth() != 0) return 0;
      m.leave();
      break;
    default:
      if (m.has_ceiling()) return unlock_as(m.type(), raw);
      return m.is_robust() ? robust_mutex(raw).unlock() : EINVAL;
  }
  m.word().unlock();
  return 0;
}

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
  int kind = PTHREAD_MUTEX_DEFAULT;
  int shared = PTHREAD_PROCESS_PRIVATE;
  int ceiling = 0;
  if (attributes != nullptr) {
    int robust = PTHREAD_MUTEX_STALLED;
    int protocol = PTHREAD_PRIO_NONE;
    if (const int error = pthread_mutexattr_gettype(attributes, &kind)) return error;
    pthread_mutexattr_getpshared(attributes, &shared);
    pthread_mutexattr_getrobust(attributes, &robust);
    pthread_mutexattr_getprotocol(attributes, &protocol);
    if (robust == PTHREAD_MUTEX_ROBUST) kind |= mutex_view::robust;
    if (protocol == PTHREAD_PRIO_PROTECT) {
      if (robust == PTHREAD_MUTEX_ROBUST) return ENOTSUP;  // as the C library has it
      kind |= mutex_view::protect;
      pthread_mutexattr_getprioceiling(attributes, &ceiling);
    }
  }
  std::memset(mutex, 0, sizeof *mutex);
  mutex_view m(mutex);
  m.set_kind(shared == PTHREAD_PROCESS_SHARED ? kind | mutex_view::shared : kind);
  if (m.has_ceiling()) m.set_ceiling(ceiling);
  return 0;
}

int strata_pthread_mutex_destroy(pthread_mutex_t* mutex) {
  mutex_view m(mutex);
  if (m.kind() == mutex_view::destroyed) return EINVAL;
  if (m.is_robust() ? robust_mutex(mutex).is_held() : m.word().is_held()) return EBUSY;
  m.set_kind(mutex_view::destroyed);
  return 0;
}

int strata_pthread_mutex_lock(pthread_mutex_t* mutex) { return lock(mutex, {}); }

int strata_pthread_mutex_trylock(pthread_mutex_t* mutex) {
  const mutex_view m(mutex);
  const int answer = before_lock(m, m.kind());
  if (answer == again) return 0;
  if (answer == EDEADLK) return EBUSY;
  if (answer == other) return m.is_robust() ? robust_mutex(mutex).try_lock() : EINVAL;
  if (answer != 0) return answer;
  if (!m.word().try_lock()) return EBUSY;
  after_lock(m);
  return 0;
}

int strata_pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) {
  return lock(mutex, {CLOCK_REALTIME, until});
}

int strata_pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return EINVAL;
  return lock(mutex, {clock, until});
}

int strata_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  return unlock_as(mutex_view(mutex).kind(), mutex);
}

int strata_pthread_mutex_consistent(pthread_mutex_t* mutex) {
  return mutex_view(mutex).is_robust() ? robust_mutex(mutex).make_consistent() : EINVAL;
}

int strata_pthread_mutex_getprioceiling(const pthread_mutex_t* mutex, int* ceiling) {
  const mutex_view m(const_cast<pthread_mutex_t*>(mutex));
  if (!m.has_ceiling()) return EINVAL;
  *ceiling = m.ceiling();
  return 0;
}

// Who changes it may be above it.
int strata_pthread_mutex_setprioceiling(pthread_mutex_t* mutex, int ceiling, int* before) {
  mutex_view m(mutex);
  if (!m.has_ceiling() || !is_ceiling(ceiling)) return EINVAL;
  if (const int error = lock_as(m.type(), mutex, {})) return error;
  if (before != nullptr) *before = m.ceiling();
  m.set_ceiling(ceiling);
  return unlock_as(m.type(), mutex);
}
}
