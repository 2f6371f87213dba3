// SPDX-License-Identifier: Apache-2.0
// The handlers of what has been sent to a thread run here, on its own stack.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "pthread/held_signals.hpp"
#include "pthread/holding.hpp"
#include "pthread/own_stack.hpp"
#include "pthread/signal_taker.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "sched/place.hpp"
#include "strata/detail/cpu.hpp"

namespace strata::detail::posix {
namespace {

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

// What the kernel adds while a handler runs.
sigset_t blocked_in_handler(const record& r, int number, const struct sigaction& how) noexcept {
  sigset_t all = r.blocked;
  const std::uint64_t added = blocked_by(number, how);
  for (int other = 1; other < NSIG; ++other) {
    if ((added & signal_bit(other)) != 0) sigaddset(&all, other);
  }
  return all;
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

[[gnu::noinline]] bool take_sent_here(int number) noexcept {
  if (sent_here != number) return false;
  sent_here = 0;
  return true;
}

// The handler runs in here and may end its thread, so this is unwound. Of the C library's function
// the compiler knows that it throws nothing, and would say so of whoever calls us.
void let_in(int number) {
  static int (*volatile const change)(int, const sigset_t*, sigset_t*) = &pthread_sigmask;
  const sigset_t one = only(number);
  sigset_t before;
  change(SIG_UNBLOCK, &one, &before);
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

running_handler::running_handler(record& r, std::uintptr_t from, std::uint64_t running,
                                 std::uint64_t added) noexcept
    : r_(r), is_outermost_(r.handlers_below == 0 && is_on_own_stack(from)) {
  if (!is_outermost_) return;
  r.running_above = running;
  r.added_above = added;
  r.handlers_below = from;
}

bool cannot_be_in_handler(const record& r, std::uintptr_t frame) noexcept {
  return frame >= r.handlers_below && is_on_own_stack(frame) && is_on_own_stack(r.handlers_below);
}

// What the handler itself, or a call that has been left with it, has done to the program's mask
// stays; only what it was to have blocked as long as it ran is no more.
void forget_handlers(record& r) noexcept {
  r.handlers_below = 0;
  r.handles_in_section.store(false, std::memory_order_relaxed);
  r.added_by_handlers.fetch_and(r.added_above, std::memory_order_relaxed);
  const holding lock(r.more.lock);
  // Relaxed: with the lock, as the taker looks.
  r.running_handlers.fetch_and(r.running_above, std::memory_order_relaxed);
  r.blocked = r.blocked_by_program;
  if (has_to_handle(r)) r.more.signalled.store(true, std::memory_order_relaxed);
}

void deliver_signals(record& r) {
  end_left_handlers(r);
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
      // Acquire: what the handler did. Partner: has_handled() in signal_offers.cpp.
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
    // Relaxed: see record.hpp.
    const bool was_in_section = r.handles_in_section.load(std::memory_order_relaxed);
    r.handles_in_section.store(!this_worker().preemptible.load(std::memory_order_relaxed),
                               std::memory_order_relaxed);
    {
      const running_handler one(r, stack_pointer(), running,
                                r.added_by_handlers.load(std::memory_order_relaxed));
      (void)raise_here(info);
    }
    r.handles_in_section.store(was_in_section, std::memory_order_relaxed);
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
  const sigset_t one = only(SIGPIPE);
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

}  // namespace strata::detail::posix
