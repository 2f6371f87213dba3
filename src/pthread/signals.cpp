// SPDX-License-Identifier: Apache-2.0
#include "pthread/signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include "pthread/held_signals.hpp"
#include "pthread/holding.hpp"
#include "strata/detail/worker.hpp"

namespace strata::detail::posix {

constinit std::atomic<bool> any_was_sent{false};
constinit std::atomic<record*> main_record{nullptr};

std::uint64_t blocked_by(int number, const struct sigaction& how) noexcept {
  std::uint64_t all = (how.sa_flags & SA_NODEFER) == 0 ? signal_bit(number) : 0;
  for (int other = 1; other < NSIG; ++other) {
    if (has_signal(how.sa_mask, other)) all |= signal_bit(other);
  }
  return all;
}

siginfo_t about_signal(int number, const sigval* value) noexcept {
  siginfo_t info{};
  info.si_signo = number;
  info.si_code = value != nullptr ? SI_QUEUE : SI_TKILL;
  info.si_pid = getpid();
  info.si_uid = getuid();
  if (value != nullptr) info.si_value = *value;
  return info;
}

bool add_pending(record& r, const siginfo_t& info) noexcept { return r.pending.add(info); }

bool forward_to_waiter(record& r, const siginfo_t& info) noexcept {
  const int number = info.si_signo;
  const int error = info.si_code == SI_QUEUE
                        ? pthread_sigqueue(r.signal_waiter, number, info.si_value)
                        : pthread_kill(r.signal_waiter, number);
  if (error != 0) return add_pending(r, info);
  sigaddset(&r.forwarded, number);
  return true;
}

int take_pending(record& r, const sigset_t& set, siginfo_t& info) {
  const int number = r.pending.take(set, info);
  if (number != 0) tell_taken(r, number);
  return number;
}

bool has_to_handle(record& r) noexcept {
  const std::uint64_t there = r.pending.bits() | held_signals();
  for (int number = 1; number < NSIG; ++number) {
    if ((there & signal_bit(number)) != 0 && !has_signal(r.blocked, number)) return true;
  }
  return false;
}

sigset_t unblocked(const record& r) noexcept {
  sigset_t set;
  sigfillset(&set);
  for (int number = 1; number < NSIG; ++number) {
    if (has_signal(r.blocked, number)) sigdelset(&set, number);
  }
  return set;
}

bool is_handled(int number, struct sigaction& how) noexcept {
  return sigaction(number, nullptr, &how) == 0 && how.sa_handler != SIG_DFL &&
         how.sa_handler != SIG_IGN;
}

bool has_signals_beyond(record& r, const sigset_t& mask) noexcept {
  const std::uint64_t held = held_signals();
  const holding lock(r.more.lock);
  const std::uint64_t there = r.pending.bits() | held;
  for (int number = 1; number < NSIG; ++number) {
    if ((there & signal_bit(number)) != 0 && !has_signal(mask, number)) return true;
  }
  return false;
}

}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_sigpending(sigset_t* set) {
  if (this_worker().owner == nullptr) return sigpending(set);
  if (sigpending(set) != 0) return -1;
  record& r = self();
  end_left_handlers(r);
  const std::uint64_t held = held_signals();
  const holding lock(r.more.lock);
  const std::uint64_t own = r.pending.bits();
  for (int number = 1; number < NSIG; ++number) {
    // What waits for the process at large is pending for those who have blocked it.
    const bool is_blocked = has_signal(r.blocked, number);
    if (!is_blocked) sigdelset(set, number);
    const bool is_held = (held & signal_bit(number)) != 0;
    if ((own & signal_bit(number)) != 0 || (is_held && is_blocked)) sigaddset(set, number);
  }
  return 0;
}
}
