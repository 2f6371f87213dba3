// SPDX-License-Identifier: Apache-2.0
// The end of a thread is waited for by one other, or by nobody.
#include <pthread.h>

#include <cerrno>

#include "pthread/holding.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"
#include "strata/pthread.h"

namespace strata::detail::posix {
namespace {

bool has_not_ended(void* r) {
  return (static_cast<record*>(r)->life.load(std::memory_order_acquire) & record::ended) == 0;
}

// Says that r is joined or detached; false, and nothing is said: one of both has been said before.
// `before`: its life until then.
bool claim(record& r, std::uint32_t how, std::uint32_t& before) noexcept {
  before = r.life.load(std::memory_order_relaxed);
  do {
    if ((before & (record::detached | record::joining)) != 0) return false;
  } while (!r.life.compare_exchange_weak(before, before | how, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
  return true;
}

// Asked of another thread that joins, or is on its way out of that: with its lock, as it may end.
bool is_being_cancelled(record& r) noexcept {
  // Who leaves already, and joins in a cleanup handler, stays.
  if (!r.joins_till_cancelled.load(std::memory_order_relaxed)) return false;
  const holding lock(r.more.lock);
  return r.body->extras->interrupted.load(std::memory_order_relaxed);
}

// While one exists, others find that the caller joins that thread.
class joins {
 public:
  joins(record* caller, const record* other) noexcept : caller_(caller) {
    if (caller_ == nullptr) return;
    caller_->joins_till_cancelled.store(is_cancellable(), std::memory_order_relaxed);
    caller_->joins.store(other, std::memory_order_seq_cst);
  }
  ~joins() {
    if (caller_ != nullptr) caller_->joins.store(nullptr, std::memory_order_relaxed);
  }
  joins(const joins&) = delete;
  joins& operator=(const joins&) = delete;

  // Said, then looked: of two that join each other one sees it, or both. One that has been
  // cancelled joins nobody any more.
  [[nodiscard]] bool is_in_a_circle_with(record& other) const noexcept {
    return caller_ != nullptr && other.joins.load(std::memory_order_seq_cst) == caller_ &&
           !is_being_cancelled(other);
  }

 private:
  record* const caller_;  // null: nobody can join it
};

// Of one that has ended, by who has claimed it.
int take_result(record& r, void** result) noexcept {
  if (result != nullptr) *result = r.result;
  give_record(r);
  return 0;
}

int join(pthread_t t, void** result, const deadline& until) {
  if (const int error = until.check()) return error;
  record* const r = find_record(t);
  if (r == nullptr) return ESRCH;
  record* const mine = self_if_any();
  if (r == mine) return EDEADLK;
  act_on_cancellation();
  std::uint32_t life = 0;
  if (!claim(*r, record::joining, life)) return EINVAL;
  {
    const joins here(mine, r);
    while (has_not_ended(r)) {
      if (here.is_in_a_circle_with(*r)) {
        r->life.fetch_and(~record::joining, std::memory_order_relaxed);
        return EDEADLK;
      }
      const unparked why = park_or_give_way(until.bound({.what = "thread to end",
                                                         .address = &r->life,
                                                         .still = &has_not_ended,
                                                         .argument = r,
                                                         .interruptible = is_cancellable()}));
      if (why != unparked::interrupted && (why != unparked::timed_out || !until.has_passed()))
        continue;
      r->life.fetch_and(~record::joining, std::memory_order_relaxed);
      if (why == unparked::timed_out) return ETIMEDOUT;
      act_on_cancellation();
      return join(t, result, until);
    }
  }
  return take_result(*r, result);
}

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_join(pthread_t thread, void** result) {
  if (!is_ours(thread)) return pthread_join(thread, result);
  const kept_errno keep;
  return join(thread, result, {});
}

int strata_pthread_clockjoin_np(pthread_t thread, void** result, clockid_t clock,
                                const timespec* until) {
  if (!is_ours(thread)) return pthread_clockjoin_np(thread, result, clock, until);
  const kept_errno keep;
  return join(thread, result, {clock, until});
}

int strata_pthread_timedjoin_np(pthread_t thread, void** result, const timespec* until) {
  return strata_pthread_clockjoin_np(thread, result, CLOCK_REALTIME, until);
}

int strata_pthread_tryjoin_np(pthread_t thread, void** result) {
  if (!is_ours(thread)) return pthread_tryjoin_np(thread, result);
  record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  if (r == self_if_any()) return EDEADLK;
  if (has_not_ended(r)) return EBUSY;
  // It does not wait, so it is no point of cancellation.
  std::uint32_t life = 0;
  return claim(*r, record::joining, life) ? take_result(*r, result) : EINVAL;
}

int strata_pthread_detach(pthread_t thread) {
  if (!is_ours(thread)) return pthread_detach(thread);
  record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  std::uint32_t life = 0;
  if (!claim(*r, record::detached, life)) return EINVAL;
  if ((life & record::ended) != 0) give_record(*r);
  return 0;
}
}
