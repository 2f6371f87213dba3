// SPDX-License-Identifier: Apache-2.0
#include "strata/semaphore.hpp"

#include <semaphore.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>

#include "os/clock.hpp"
#include "pthread/put_off.hpp"
#include "pthread/record.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "sched/outside_section.hpp"
#include "strata/detail/worker.hpp"
#include "strata/pthread.h"
#include "threads/waiter.hpp"

#if defined(STRATA_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace strata::detail::posix {
namespace {

// Its waits end for signals whether or not the thread can be cancelled now.
unparked acquire(semaphore_core& core, const deadline& until) {
  core.let_hungry_first();
  bool in_vain = false;
  while (!core.try_acquire()) {
    const parking how = until.bound({.what = "semaphore",
                                     .address = &core,
                                     .interruptible = is_cancellable(),
                                     .ends_by_signal = true});
    const unparked why =
        wait_or_give_way(how.deadline_ns, [&] { return core.park_here(how, in_vain); });
    if (why != unparked::woken && why != unparked::refused) return why;
    in_vain = true;
  }
  return unparked::woken;
}

// In place of what the C library keeps in a sem_t. Its own have `theirs` set: those that sem_open()
// gives out and those that processes share.
struct semaphore_state {
  semaphore_core core;
  int theirs;
};
static_assert(sizeof(semaphore_state) <= sizeof(sem_t));

semaphore_state& state_of(sem_t* s) noexcept { return *reinterpret_cast<semaphore_state*>(s); }

// Whether a wait that a handler has interrupted ends by that. From outside the kernel has decided.
bool ends_wait(const deadline& until) {
  const record& r = self();
  return r.is_os_thread || until.until != nullptr || !r.restarts;
}

// Whether the kernel would begin the wait again after a handler. It does not say which has run:
// after any that there is. Faults end no wait, nor does abort(): its handlers seldom have
// SA_RESTART, and would end the waits for all the others.
bool begins_again() noexcept {
  for (int number = 1; number < NSIG; ++number) {
    constexpr std::array faults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    if (std::find(faults.begin(), faults.end(), number) != faults.end()) continue;
    struct sigaction how {};
    if (is_handled(number, how) && (how.sa_flags & SA_RESTART) == 0) return false;
  }
  return true;
}

// By a thread from outside, which somebody can cancel: the kernel knows nothing of that.
int wait_outside(sem_t* semaphore, const deadline& until) {
  constexpr std::int64_t look_again_ns = 20'000'000;
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  for (;;) {
    act_on_cancellation();
    // What has passed may have done so before this clock began, and a time has no less than 0.
    const std::int64_t end_ns =
        std::clamp<std::int64_t>(until.to_ns(), 0, os::now_ns() + look_again_ns);
    const timespec end{end_ns / ns_per_s, end_ns % ns_per_s};
    if (sem_clockwait(semaphore, CLOCK_MONOTONIC, &end) == 0) {
#if defined(STRATA_TSAN)
      __tsan_acquire(semaphore);  // it knows sem_post(), and not this
#endif
      return 0;
    }
    const int error = errno_here();
    const bool goes_on = error == ETIMEDOUT
                             ? !until.has_passed()
                             : error == EINTR && until.until == nullptr && begins_again();
    if (!goes_on) return -1;
  }
}

// The other side of a named semaphore is another process, which cannot wake a thread of ours.
int poll_theirs(sem_t* semaphore, const deadline& until) {
  polled_wait between("semaphore of several processes");
  for (;;) {
    act_on_cancellation();
    if (sem_trywait(semaphore) == 0) return 0;
    if (until.has_passed()) return fail_with(ETIMEDOUT);
    if (between.pause(until, is_cancellable()) == unparked::signalled && ends_wait(until))
      return fail_with(EINTR);
  }
}

int wait(sem_t* semaphore, const deadline& until) {
  act_on_cancellation();
  semaphore_state& s = state_of(semaphore);
  if (s.theirs == 0 && s.core.try_acquire()) return 0;
  if (until.check() != 0) return fail_with(EINVAL);
  const int error_before = errno_here();
  if (s.theirs != 0) {
    if (is_unknown_outside())
      return until.until == nullptr ? sem_wait(semaphore)
                                    : sem_clockwait(semaphore, until.clock, until.until);
    const int answer =
        is_outside() ? wait_outside(semaphore, until) : poll_theirs(semaphore, until);
    if (answer == 0) set_errno_here(error_before);
    return answer;
  }
  if (is_outside()) (void)self();  // what tells us of signals
  for (;;) {
    switch (acquire(s.core, until)) {
      case unparked::interrupted:
        act_on_cancellation();
        break;
      case unparked::timed_out:
        if (until.has_passed()) return fail_with(ETIMEDOUT);
        break;
      case unparked::signalled:
        if (ends_wait(until)) return fail_with(EINTR);
        break;
      default:
        set_errno_here(error_before);
        return 0;
    }
  }
}

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_sem_init(sem_t* semaphore, int shared, unsigned value) {
  if (value > SEM_VALUE_MAX) return fail_with(EINVAL);
  if (shared != 0) return sem_init(semaphore, shared, value);  // which leaves `theirs` set
  std::memset(static_cast<void*>(semaphore), 0, sizeof *semaphore);
  ::new (&state_of(semaphore).core) strata::detail::semaphore_core(value);
  return 0;
}

int strata_sem_destroy(sem_t* semaphore) {
  semaphore_state& s = state_of(semaphore);
  if (s.theirs != 0) return sem_destroy(semaphore);
  return is_awaited(&s.core) ? fail_with(EBUSY) : 0;
}

int strata_sem_wait(sem_t* semaphore) { return wait(semaphore, {}); }

int strata_sem_trywait(sem_t* semaphore) {
  semaphore_state& s = state_of(semaphore);
  if (s.theirs != 0) return sem_trywait(semaphore);
  return s.core.try_acquire() ? 0 : fail_with(EAGAIN);
}

int strata_sem_timedwait(sem_t* semaphore, const timespec* until) {
  return wait(semaphore, {CLOCK_REALTIME, until});
}

int strata_sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return fail_with(EINVAL);
  return wait(semaphore, {clock, until});
}

int strata_sem_post(sem_t* semaphore) {
  semaphore_state& s = state_of(semaphore);
  if (s.theirs != 0) return sem_post(semaphore);
  if (s.core.count() >= SEM_VALUE_MAX) return fail_with(EOVERFLOW);
  if (outside_section::is_here()) [[unlikely]] {
    if (!put_off_waking(&s.core)) return fail_with(EAGAIN);
    s.core.release_unheard();
    return 0;
  }
  const kept_errno keep;
  s.core.release(1);
  return 0;
}

int strata_sem_getvalue(sem_t* semaphore, int* value) {
  semaphore_state& s = state_of(semaphore);
  if (s.theirs != 0) return sem_getvalue(semaphore, value);
  *value = static_cast<int>(s.core.count());
  return 0;
}
}
