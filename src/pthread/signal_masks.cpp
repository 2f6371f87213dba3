// SPDX-License-Identifier: Apache-2.0
// What a thread has blocked. What it has unblocked the taker of signals counts, and waits for.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "pthread/held_signals.hpp"
#include "pthread/holding.hpp"
#include "pthread/put_off.hpp"
#include "pthread/signal_taker.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"

namespace strata::detail::posix {
namespace {

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

}  // namespace

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

void put_back_mask_of_main() noexcept {
  // Acquire: the record as run_main() has prepared it, see preload/start.cpp.
  record* const main = main_record.load(std::memory_order_acquire);
  if (main == nullptr || main->is_os_thread || !runs_on_process_thread()) return;
  sigset_t mask;
  {
    const holding lock(main->more.lock);
    mask = main->blocked_by_program;
  }
  const std::uint64_t added = main->added_by_handlers.load(std::memory_order_relaxed);
  for (int number = 1; number < NSIG; ++number) {
    if ((added & signal_bit(number)) != 0) sigaddset(&mask, number);
  }
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

void inherit_signals(record& r, const record& parent) {
  sigset_t mask = parent.blocked;
  // siglongjmp() changes an OS thread's without a call of ours.
  if (parent.is_os_thread) pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  begin_mask(r, mask, false);
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
  end_left_handlers(r);
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

void note_mask_of_os_thread() {
  record& r = self();
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  begin_mask(r, now, true);
  siginfo_t info;
  while (take_held(unblocked(r), info) != 0) (void)raise_here(info);
}

}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  if (this_worker().owner == nullptr) {
    const int error = pthread_sigmask(how, set, before);
    if (error != 0 || set == nullptr) return error;
    outside_section::is_here() ? put_off_noting_mask() : note_mask_of_os_thread();
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
}
