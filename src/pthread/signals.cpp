// SPDX-License-Identifier: Apache-2.0
// Signals belong to OS threads. What a lightweight thread has of its own is the set that it has
// blocked, as far as it told us, and what was sent to it while it was blocked.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "pthread/record.hpp"
#include "pthread/wait.hpp"
#include "strata/blocking.hpp"

namespace strata::detail::posix {
namespace {

// 0: none.
int take_pending(record& r, const sigset_t& set) {
  for (int number = 1; number < NSIG; ++number) {
    if (sigismember(&r.pending, number) == 1 && sigismember(&set, number) == 1) {
      sigdelset(&r.pending, number);
      return number;
    }
  }
  return 0;
}

// The worker that runs us may have blocked it, as workers do, though we have not.
int raise_here(int number) {
  sigset_t one;
  sigset_t before;
  sigemptyset(&one);
  sigaddset(&one, number);
  if (raise(number) != 0) return EINVAL;
  pthread_sigmask(SIG_UNBLOCK, &one, &before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return 0;
}

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  const int error = pthread_sigmask(how, set, before);
  if (error != 0 || set == nullptr) return error;
  record& r = self();
  const std::lock_guard lock(r.more.lock);
  for (int number = 1; number < NSIG; ++number) {
    const bool listed = sigismember(set, number) == 1;
    if (how == SIG_SETMASK ? listed : listed && how == SIG_BLOCK) {
      sigaddset(&r.blocked, number);
    } else if (how == SIG_SETMASK || (listed && how == SIG_UNBLOCK)) {
      sigdelset(&r.blocked, number);
    }
  }
  return 0;
}

int strata_pthread_kill(pthread_t thread, int number) {
  if (!is_ours(thread)) return pthread_kill(thread, number);
  if (number < 0 || number >= NSIG) return EINVAL;
  record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  {
    const std::lock_guard lock(r->more.lock);
    if (!is_still(*r, thread)) return ESRCH;
    if ((r->life.load(std::memory_order_relaxed) & record::ended) != 0) return 0;
    if (number == 0) return 0;
    if (r->is_os_thread) return pthread_kill(r->os_thread, number);
    if (r->waits_for_signal) return pthread_kill(r->signal_waiter, number);
    if (sigismember(&r->blocked, number) == 1) {
      sigaddset(&r->pending, number);
      return 0;
    }
  }
  const kept_errno keep;
  if (r == self_if_any()) return raise_here(number);
  return kill(getpid(), number) == 0 ? 0 : EINVAL;
}

int strata_raise(int number) {
  if (this_worker().owner == nullptr) return raise(number);
  const int error = strata_pthread_kill(strata_pthread_self(), number);
  if (error == 0) return 0;
  set_errno_here(error);
  return -1;
}

int strata_sigwait(const sigset_t* set, int* number) {
  act_on_cancellation();
  record& r = self();
  if (r.is_os_thread) return sigwait(set, number);
  {
    const std::lock_guard lock(r.more.lock);
    if (const int found = take_pending(r, *set)) {
      *number = found;
      return 0;
    }
  }
  const sigset_t wanted = *set;
  int answer = 0;
  // On an OS thread that waits for nothing else; meanwhile our worker goes on.
  strata::blocking([&] {
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, &wanted, &before);
    {
      const std::lock_guard lock(r.more.lock);
      r.waits_for_signal = true;
      r.signal_waiter = pthread_self();
      for (int n = 1; n < NSIG; ++n) {
        // Sent to us since we looked.
        if (sigismember(&r.pending, n) == 1 && sigismember(&wanted, n) == 1) {
          sigdelset(&r.pending, n);
          pthread_kill(r.signal_waiter, n);
        }
      }
    }
    answer = sigwait(&wanted, number);
    {
      const std::lock_guard lock(r.more.lock);
      r.waits_for_signal = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  });
  act_on_cancellation();
  return answer;
}
}
