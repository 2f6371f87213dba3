// SPDX-License-Identifier: Apache-2.0
#include "pthread/mutex.hpp"

#include <cerrno>
#include <climits>
#include <cstring>

#include "pthread/fork.hpp"
#include "pthread/on_worker.hpp"
#include "pthread/robust.hpp"

namespace strata::detail::posix {
namespace {

// 0: go on and lock; everything else is the answer, `again` that of a recursive mutex, but for
// `other`: robust, or nothing that can be locked.
constexpr int again = -1;
constexpr int other = -2;
int before_lock(mutex_view m) {
  switch (m.kind()) {
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
      return other;
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

int lock(pthread_mutex_t* raw, const deadline& until) {
  mutex_view m(raw);
  if (const int answer = before_lock(m)) {
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

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
  int kind = PTHREAD_MUTEX_DEFAULT;
  int shared = PTHREAD_PROCESS_PRIVATE;
  if (attributes != nullptr) {
    int robust = PTHREAD_MUTEX_STALLED;
    int protocol = PTHREAD_PRIO_NONE;
    if (const int error = pthread_mutexattr_gettype(attributes, &kind)) return error;
    pthread_mutexattr_getpshared(attributes, &shared);
    pthread_mutexattr_getrobust(attributes, &robust);
    pthread_mutexattr_getprotocol(attributes, &protocol);
    if (protocol != PTHREAD_PRIO_NONE) return ENOTSUP;
    if (robust == PTHREAD_MUTEX_ROBUST) kind |= mutex_view::robust;
  }
  std::memset(mutex, 0, sizeof *mutex);
  mutex_view(mutex).set_kind(shared == PTHREAD_PROCESS_SHARED ? kind | mutex_view::shared : kind);
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
  const int answer = before_lock(m);
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
  mutex_view m(mutex);
  switch (m.kind()) {
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
      return m.is_robust() ? robust_mutex(mutex).unlock() : EINVAL;
  }
  m.word().unlock();
  return 0;
}

int strata_pthread_mutex_consistent(pthread_mutex_t* mutex) {
  return mutex_view(mutex).is_robust() ? robust_mutex(mutex).make_consistent() : EINVAL;
}

// There are none with a ceiling.
int strata_pthread_mutex_getprioceiling(const pthread_mutex_t*, int*) { return EINVAL; }
int strata_pthread_mutex_setprioceiling(pthread_mutex_t*, int, int*) { return EINVAL; }
}
