// SPDX-License-Identifier: Apache-2.0
#include "pthread/signals.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "pthread/held_signals.hpp"
#include "pthread/holding.hpp"
#include "pthread/signal_taker.hpp"
#include "pthread/wait.hpp"

namespace strata::detail::posix {
namespace {

using sent_value = std::optional<sigval>;

#if defined(STRATA_CARRIES_PROGRAM_LOCALS)
#define STRATA_IN_HANDLERS __attribute__((tls_model("initial-exec")))
#else
#define STRATA_IN_HANDLERS
#endif
thread_local constinit int sent_here STRATA_IN_HANDLERS = 0;
#undef STRATA_IN_HANDLERS

// What was noted before: a handler may have come between.
[[gnu::noinline]] int note_sent_here(int number) noexcept {
  return std::exchange(sent_here, number);
}

int send_to_os_thread(const record& r, int number, const sent_value& value) {
  return value ? pthread_sigqueue(r.os_thread, number, *value) : pthread_kill(r.os_thread, number);
}

int send(pthread_t thread, int number, const sent_value& value) {
  if (number < 0 || number >= NSIG) return EINVAL;
  record* const r = find_record(thread);
  if (r == nullptr) return ESRCH;
  const kept_errno keep;
  const bool own = r == self_if_any();
  siginfo_t info = about_signal(number, value ? &*value : nullptr);
  bool for_process = false;
  {
    const holding lock(r->more.lock);
    if (!is_still(*r, thread)) return ESRCH;
    if ((r->life.load(std::memory_order_relaxed) & record::ended) != 0) return 0;
    if (number == 0) return 0;
    if (r->is_os_thread && !own) return send_to_os_thread(*r, number, value);
    if (r->waits_for_signal && has_signal(r->awaited, number)) {
      forward_to_waiter(*r, info);
      return 0;
    }
    if (has_signal(r->blocked, number) && !r->is_os_thread)
      return add_pending(*r, info) ? 0 : EAGAIN;
    struct sigaction how {};
    if (sigaction(number, nullptr, &how) != 0) return EINVAL;
    const bool handled = how.sa_handler != SIG_DFL && how.sa_handler != SIG_IGN;
    if (handled && !own && r->body == r) {
      if (!add_pending(*r, info)) return EAGAIN;
      r->more.signalled.store(true, std::memory_order_relaxed);
      if (r->more.parked != nullptr) wake(*r->more.parked, unparked::signalled);
      return 0;
    }
    for_process = handled && !own;
  }
  // Without the lock: the handler may run here and now.
  if (for_process) return kill(getpid(), number) == 0 ? 0 : EINVAL;
  if (own && r->is_os_thread) return send_to_os_thread(*r, number, value);
  // Its own; or what concerns the process, whoever gets it.
  if (!own) return raise_here(info);
  // As natively what has interrupted the thread ends first. Acquire: with what that handler did.
  // Partner: handle_for() in signal_taker.cpp.
  while (r->handled_elsewhere.load(std::memory_order_acquire) &&
         (r->blocked_elsewhere.load(std::memory_order_relaxed) & signal_bit(number)) != 0)
    (void)give_way(parking::never);
  const kept_mask mask = keep_mask(*r);
  const int error = raise_here(info);
  restore_mask(*r, mask);
  return error;
}

// What the kernel adds while a handler runs.
sigset_t blocked_in_handler(const record& r, int number, const struct sigaction& how) noexcept {
  sigset_t all = r.blocked;
  const std::uint64_t added = blocked_by(number, how);
  for (int other = 1; other < NSIG; ++other) {
    if ((added & signal_bit(other)) != 0) sigaddset(&all, other);
  }
  return all;
}

// What is pending for the process when the caller unblocks it is its own, as natively: it may be
// the last that does.
void take_from_process(record& r, const sigset_t& unblocked_now) noexcept {
  constexpr timespec at_once{0, 0};
  // What comes all the time the taker sees to.
  constexpr int many = 1000;
  siginfo_t info;
  // The C library's call does not tell all that the sender has said.
  for (int i = 0; i < many &&
                  syscall(SYS_rt_sigtimedwait, &unblocked_now, &info, &at_once, (NSIG - 1) / 8) > 0;
       ++i) {
    const holding lock(r.more.lock);
    (void)add_pending(r, info);
    r.more.signalled.store(true, std::memory_order_relaxed);
  }
}

void set_mask(record& r, const sigset_t& set) noexcept {
  const holding lock(r.more.lock);
  r.blocked = set;
}

// What a handler that has interrupted main(), and in which we are, is not to be interrupted by.
sigset_t masked_by_handlers(const record& r) noexcept {
  sigset_t masked;
  sigemptyset(&masked);
  if (!r.is_main || !runs_on_process_thread()) return masked;
  const std::uint64_t added = r.added_by_handlers.load(std::memory_order_relaxed);
  if (added == 0) return masked;
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  for (int number = 1; number < NSIG; ++number) {
    if (has_signal(now, number) && (added & signal_bit(number)) != 0) sigaddset(&masked, number);
  }
  return masked;
}

}  // namespace

constinit std::atomic<record*> main_record{nullptr};

[[gnu::noinline]] bool take_sent_here(int number) noexcept {
  if (sent_here != number) return false;
  sent_here = 0;
  return true;
}

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

void forward_to_waiter(record& r, const siginfo_t& info) noexcept {
  sigaddset(&r.forwarded, info.si_signo);
  (void)(info.si_code == SI_QUEUE ? pthread_sigqueue(r.signal_waiter, info.si_signo, info.si_value)
                                  : pthread_kill(r.signal_waiter, info.si_signo));
}

int take_pending(record& r, const sigset_t& set, siginfo_t& info) {
  const int number = r.pending.take(set, info);
  if (number != 0) tell_taken(r, number);
  return number;
}

bool has_to_handle(const record& r) noexcept {
  const std::uint64_t held = held_signals();
  for (int number = 1; number < NSIG; ++number) {
    const bool is_there = has_signal(r.pending.numbers, number) || (held & signal_bit(number)) != 0;
    if (is_there && !has_signal(r.blocked, number)) return true;
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

void let_in(int number) {
  sigset_t one;
  sigset_t before;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_UNBLOCK, &one, &before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// The worker that runs us may have blocked it, as workers do, though we have not.
int raise_here(siginfo_t& info) {
  const int number = info.si_signo;
  const int before = note_sent_here(number);
  const bool sent =
      syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, &info) == 0;
  if (!sent && raise(number) != 0) {
    (void)note_sent_here(before);
    return EINVAL;
  }
  let_in(number);
  (void)note_sent_here(before);  // also where there was no handler
  return 0;
}

void deliver_signals(record& r) {
  r.restarts = true;
  // Not for ever: a handler may wait for what the caller holds.
  constexpr int moments_max = 1000;
  int moments = 0;
  const std::uint32_t left = r.is_main ? left_by_now() : 0;
  for (;;) {
    int number = 0;
    siginfo_t info;
    // Relaxed: changed by this thread alone.
    const std::uint64_t running = r.running_handlers.load(std::memory_order_relaxed);
    const sigset_t masked = masked_by_handlers(r);
    {
      const holding lock(r.more.lock);
      r.more.signalled.store(false, std::memory_order_relaxed);
      if (std::exchange(r.ends_by_elsewhere, false)) r.restarts = false;
      sigset_t wanted = unblocked(r);
      const std::uint64_t elsewhere = r.handled_elsewhere.load(std::memory_order_relaxed)
                                          ? r.blocked_elsewhere.load(std::memory_order_relaxed)
                                          : 0;
      for (int other = 1; other < NSIG; ++other) {
        if (has_signal(masked, other) || (elsewhere & signal_bit(other)) != 0)
          sigdelset(&wanted, other);
      }
      number = take_pending(r, wanted, info);
      if (number == 0) number = take_held(wanted, info);
      // Relaxed: with the lock, as the taker looks.
      if (number != 0)
        r.running_handlers.store(running | signal_bit(number), std::memory_order_relaxed);
    }
    if (number == 0) {
      // Acquire: what the handler did. Partner: signal_taker.cpp.
      if (r.handled_elsewhere.load(std::memory_order_acquire)) {
        (void)give_way(parking::never);
        continue;
      }
      // What has interrupted somebody else here, and was meant for main().
      if (!r.is_main || ++moments > moments_max || !await_signal_taker(left)) return;
      continue;
    }
    struct sigaction how {};
    const bool handled = is_handled(number, how);
    if (handled && (how.sa_flags & SA_RESTART) == 0) r.restarts = false;
    const bool restarts = r.restarts;
    const kept_mask own = keep_mask(r);
    set_mask(r, blocked_in_handler(r, number, how));
    (void)raise_here(info);
    // Relaxed: whoever still saw it has left us what we look for next, with the lock.
    r.running_handlers.store(running, std::memory_order_relaxed);
    restore_mask(r, own);
    r.restarts = restarts;  // the handler may have waited
    if (handled) r.handlers_run.fetch_add(1, std::memory_order_relaxed);
  }
}

void take_broken_pipe() {
  if (this_worker().owner == nullptr) return;
  const kept_errno keep;
  record* const r = self_if_any();
  // Without the lock, since it is its own: a handler may write wherever it interrupts.
  if (r == nullptr || !has_signal(r->blocked, SIGPIPE)) return let_in(SIGPIPE);
  constexpr timespec at_once{0, 0};
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGPIPE);
  (void)sigtimedwait(&one, nullptr, &at_once);
  const holding lock(r->more.lock);
  (void)add_pending(*r, about_signal(SIGPIPE, nullptr));
}

void deliver_signals_with(record& r, const sigset_t& mask) {
  const kept_mask own = keep_mask(r);
  set_mask(r, mask);
  deliver_signals(r);
  restore_mask(r, own);
}

bool has_signals_beyond(record& r, const sigset_t& mask) noexcept {
  const std::uint64_t held = held_signals();
  const holding lock(r.more.lock);
  for (int number = 1; number < NSIG; ++number) {
    const bool is_there = has_signal(r.pending.numbers, number) || (held & signal_bit(number)) != 0;
    if (is_there && !has_signal(mask, number)) return true;
  }
  return false;
}

void begin_mask(record& r, const sigset_t& mask, bool is_os_thread) noexcept {
  const holding lock(r.more.lock);
  r.blocked = mask;
  r.blocked_by_program = mask;
  r.is_os_thread = is_os_thread;
}

kept_mask keep_mask(record& r) noexcept {
  const holding lock(r.more.lock);
  return {r.blocked, r.blocked_by_program, r.opened};
}

void restore_mask(record& r, const kept_mask& before) {
  sigset_t more;
  sigset_t less;
  sigemptyset(&more);
  sigemptyset(&less);
  bool changes_opened = false;
  {
    const holding lock(r.more.lock);
    for (int number = 1; number < NSIG; ++number) {
      const bool was = has_signal(before.blocked_by_program, number);
      if (was == has_signal(r.blocked_by_program, number)) continue;
      const bool is_opened = has_signal(r.opened, number);
      // On the process's thread the kernel restores its own mask.
      const bool has_to_be =
          !was && (has_signal(before.opened, number) || !(r.is_main && is_process_thread()));
      if (is_opened && was) sigaddset(&less, number);
      if (!is_opened && has_to_be) sigaddset(&more, number);
      changes_opened = true;
    }
    r.blocked = before.blocked;
    r.blocked_by_program = before.blocked_by_program;
    if (has_to_handle(r)) r.more.signalled.store(true, std::memory_order_relaxed);
  }
  if (changes_opened) count_opened(r, more, less);
}

void inherit_signals(record& r, const record& parent) {
  begin_mask(r, parent.blocked, false);
  if (!parent.opened_any) return;
  sigset_t none;
  sigemptyset(&none);
  count_opened(r, parent.opened, none);
}

void end_signals(record& r) noexcept {
  if (!r.opened_any) return;
  const sigset_t all = r.opened;
  sigset_t none;
  sigemptyset(&none);
  count_opened(r, none, all);
  r.opened_any = false;
  // Others may have them unblocked, too: nothing is offered to us any more, for which the taker
  // would wait.
  const holding lock(r.more.lock);
  sigfillset(&r.blocked);
  decline_offer(r);
}

void change_mask(record& r, int how, const sigset_t* set, sigset_t* before) {
  sigset_t more;
  sigset_t less;
  sigemptyset(&more);
  sigemptyset(&less);
  bool changes_opened = false;
  // What interrupts main() in a call of the kernel is what comes to the thread that the process
  // began with.
  const bool has_os_thread = r.is_main && is_process_thread();
  {
    const holding lock(r.more.lock);
    const sigset_t was = r.blocked;
    for (int number = 1; set != nullptr && number < NSIG; ++number) {
      const bool listed = has_signal(*set, number);
      if (how == SIG_SETMASK ? listed : listed && how == SIG_BLOCK) {
        if (number == SIGKILL || number == SIGSTOP) continue;
        // What a handler has blocked as long as it lasts stays so: it ends with it.
        if (has_signal(r.blocked, number)) continue;
        sigaddset(&r.blocked, number);
        sigaddset(&r.blocked_by_program, number);
        if (!has_signal(r.opened, number)) continue;
        sigaddset(&less, number);
        changes_opened = true;
      } else if ((how == SIG_SETMASK || listed) && has_signal(r.blocked, number)) {
        sigdelset(&r.blocked, number);
        sigdelset(&r.blocked_by_program, number);
        if (has_signal(r.opened, number) || has_os_thread) continue;
        sigaddset(&more, number);
        changes_opened = true;
      }
    }
    if (before != nullptr) *before = was;
    if (set != nullptr) r.more.signalled.store(has_to_handle(r), std::memory_order_relaxed);
  }
  // In a handler that the kernel has called it knows more than we do.
  if (has_os_thread) pthread_sigmask(how, set, before);
  if (!changes_opened) return;
  // Before the taker is told, which would be late for who asks what has come.
  take_from_process(r, more);
  count_opened(r, more, less);
}

}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  if (this_worker().owner == nullptr) {
    const int error = pthread_sigmask(how, set, before);
    if (error != 0 || set == nullptr) return error;
    record& r = self();
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    begin_mask(r, now, true);
    siginfo_t info;
    while (take_held(unblocked(r), info) != 0) (void)raise_here(info);
    return 0;
  }
  if (set != nullptr && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK) return EINVAL;
  const kept_errno keep;
  record& r = self();
  // What is on its way comes before.
  if (set != nullptr && r.is_main) settle_signals(r);
  const sigset_t wanted = set != nullptr ? *set : sigset_t{};  // `before` may lie there, too
  change_mask(r, how, set != nullptr ? &wanted : nullptr, before);
  if (r.more.signalled.load(std::memory_order_relaxed)) deliver_signals(r);
  return 0;
}

int strata_sigprocmask(int how, const sigset_t* set, sigset_t* before) {
  const int error = strata_pthread_sigmask(how, set, before);
  if (error == 0) return 0;
  set_errno_here(error);
  return -1;
}

int strata_sigpending(sigset_t* set) {
  if (this_worker().owner == nullptr) return sigpending(set);
  if (sigpending(set) != 0) return -1;
  record& r = self();
  const std::uint64_t held = held_signals();
  const holding lock(r.more.lock);
  for (int number = 1; number < NSIG; ++number) {
    // What waits for the process at large is pending for those who have blocked it.
    const bool is_blocked = has_signal(r.blocked, number);
    if (!is_blocked) sigdelset(set, number);
    const bool is_held = (held & signal_bit(number)) != 0;
    if (has_signal(r.pending.numbers, number) || (is_held && is_blocked)) sigaddset(set, number);
  }
  return 0;
}

int strata_pthread_kill(pthread_t thread, int number) {
  return is_ours(thread) ? send(thread, number, {}) : pthread_kill(thread, number);
}

int strata_pthread_sigqueue(pthread_t thread, int number, union sigval value) {
  return is_ours(thread) ? send(thread, number, value) : pthread_sigqueue(thread, number, value);
}

int strata_raise(int number) {
  if (this_worker().owner == nullptr) return raise(number);
  const int error = strata_pthread_kill(strata_pthread_self(), number);
  if (error == 0) return 0;
  set_errno_here(error);
  return -1;
}
}
