// SPDX-License-Identifier: Apache-2.0
#include "pthread/robust.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>
#include <new>
#include <vector>

#include "pthread/process_end.hpp"
#include "pthread/record.hpp"

namespace strata::detail::posix {
namespace {

constexpr int waits_for_itself = -1;

// The caller's, with room for one more in its list: who has the lock cannot fail any more. Null
// without memory.
record* with_room() noexcept {
  try {
    record& r = self();
    r.robust_held.emplace_back();
    r.robust_held.pop_back();
    return &r;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

std::uintptr_t robust_mutex::name_of(const record& r) const noexcept {
  return view().is_shared() ? name_among_processes(r.index) : reinterpret_cast<std::uintptr_t>(&r);
}

bool robust_mutex::is_of(const record& r) const noexcept {
  // Only the owner finds itself, so no order is needed.
  return owner().load(std::memory_order_relaxed) == name_of(r);
}

bool robust_mutex::is_mine() const noexcept {
  const record* const r = self_if_any();
  return r != nullptr && is_of(*r);
}

bool robust_mutex::is_held() const noexcept {
  if (!view().is_shared()) return view().word().is_held();
  const std::uintptr_t seen = owner().load(std::memory_order_relaxed);
  return seen != 0 && !has_process_ended(seen);
}

int robust_mutex::lock(const deadline& until) {
  record* const r = with_room();
  if (r == nullptr) return ENOMEM;
  if (is_of(*r)) {
    if (const int answer = lock_again(); answer != waits_for_itself) return answer;
  }
  if (is_lost()) return ENOTRECOVERABLE;
  if (!try_take(*r)) {
    if (const int error = until.check()) return error;
    const kept_errno keep;
    if (!take_until(*r, until)) return ETIMEDOUT;
  }
  return taken(*r);
}

int robust_mutex::try_lock() {
  record* const r = with_room();
  if (r == nullptr) return ENOMEM;
  if (is_of(*r)) {
    const int answer = lock_again();
    return answer == waits_for_itself || answer == EDEADLK ? EBUSY : answer;
  }
  if (!is_lost() && try_take(*r)) return taken(*r);
  // Others have a lost one for a moment, when they find that out.
  return is_lost() ? ENOTRECOVERABLE : EBUSY;
}

int robust_mutex::unlock() noexcept {
  if (!is_mine()) return EPERM;
  if (view().depth() > 1) {
    --view().depth();
    return 0;
  }
  retire();
  release();
  return 0;
}

int robust_mutex::make_consistent() noexcept {
  if (!is_mine() || state().load(std::memory_order_relaxed) != condition::inconsistent)
    return EINVAL;
  state().store(condition::consistent, std::memory_order_relaxed);
  return 0;
}

void robust_mutex::retire() noexcept {
  std::vector<pthread_mutex_t*>& held = self_if_any()->robust_held;
  // Mostly the newest.
  const auto mine = std::find(held.rbegin(), held.rend(), m_);
  if (mine != held.rend()) held.erase(std::next(mine).base());
  if (state().load(std::memory_order_relaxed) == condition::inconsistent)
    state().store(condition::lost, std::memory_order_relaxed);
  if (!view().is_shared()) owner().store(0, std::memory_order_relaxed);
}

void robust_mutex::release() noexcept {
  if (view().is_shared()) {
    // Partner: try_take().
    owner().store(0, std::memory_order_release);
  } else {
    view().word().unlock();
  }
}

int robust_mutex::relock(unsigned depth) {
  record& r = self();  // there is one: the mutex was its
  if (!try_take(r)) (void)take_until(r, {});
  const int answer = taken(r);
  if (answer != ENOTRECOVERABLE) view().depth() = depth;
  return answer;
}

void robust_mutex::abandon() noexcept {
  mark_inconsistent();
  if (!view().is_shared()) owner().store(0, std::memory_order_relaxed);
  release();
}

// By the owner. The answer, or that it is to wait like others.
int robust_mutex::lock_again() noexcept {
  switch (view().type()) {
    case PTHREAD_MUTEX_RECURSIVE:
      if (view().depth() == UINT_MAX) return EAGAIN;
      ++view().depth();
      return 0;
    case PTHREAD_MUTEX_ERRORCHECK:
      return EDEADLK;
    default:
      return waits_for_itself;
  }
}

// The lock, and no more. taken() follows.
bool robust_mutex::try_take(const record& r) noexcept {
  if (!view().is_shared()) return view().word().try_lock();
  const std::uintptr_t mine = name_of(r);
  std::uintptr_t seen = 0;
  // Acquire: after whoever released it. Partner: release().
  if (owner().compare_exchange_strong(seen, mine, std::memory_order_acquire)) return true;
  // Of those who find its process gone, one gets it. Should that one end here, the next finds the
  // same.
  if (!has_process_ended(seen) ||
      !owner().compare_exchange_strong(seen, mine, std::memory_order_acquire))
    return false;
  mark_inconsistent();
  return true;
}

bool robust_mutex::take_until(const record& r, const deadline& until) {
  if (!view().is_shared()) return view().lock_word(until);
  polled_wait between("robust mutex of several processes");
  do {
    (void)between.pause(until, false);
    if (try_take(r)) return true;
  } while (!until.has_passed());
  return false;
}

// With the lock. Those who wait for a lost one get it by turns, and each lets the next one in.
int robust_mutex::taken(record& r) {
  const condition found = state().load(std::memory_order_relaxed);
  if (found == condition::lost) {
    release();
    return ENOTRECOVERABLE;
  }
  if (!view().is_shared()) owner().store(name_of(r), std::memory_order_relaxed);
  view().depth() = 1;
  r.robust_held.push_back(m_);
  return found == condition::inconsistent ? EOWNERDEAD : 0;
}

void robust_mutex::mark_inconsistent() noexcept {
  if (!is_lost()) state().store(condition::inconsistent, std::memory_order_relaxed);
}

void abandon_robust(record& r) noexcept {
  while (!r.robust_held.empty()) {
    robust_mutex m(r.robust_held.back());
    r.robust_held.pop_back();
    if (m.is_of(r)) m.abandon();
  }
}

void forget_shared_robust(record& r) noexcept {
  std::erase_if(r.robust_held, [&](pthread_mutex_t* m) { return !robust_mutex(m).is_of(r); });
}

}  // namespace strata::detail::posix
