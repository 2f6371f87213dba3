// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/handlers.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "os/no_signals.hpp"
#include "pthread/bell.hpp"
#include "pthread/fork.hpp"
#include "pthread/pending_signals.hpp"
#include "pthread/preload/asked_handlers.hpp"
#include "pthread/reminders.hpp"
#include "pthread/signal_taker.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "sched/place.hpp"

namespace strata::preload {
namespace {

namespace posix = detail::posix;

// Stored before the kernel is told, too, and looked at by whoever sets a handler or begins main():
// it says no more than that there may be work, and orders nothing.
constinit std::atomic<bool> any_asked{false};
// For those of signal() alone, which begin calls again unless siginterrupt() has said otherwise.
// Relaxed: between threads the program has to order siginterrupt() and signal() itself.
constinit std::array<std::atomic<bool>, NSIG> interrupts_calls{};

bool is_signal(int number) noexcept { return number > 0 && number < NSIG; }

// Faults and what comes to the calling thread itself are handled where they happen, and a profiler
// wants to see what runs. (It sees the process's first OS thread alone: the others block it, for
// whoever runs there may have it blocked.)
bool is_left_alone(int number) noexcept {
  switch (number) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGSYS:
    case SIGPIPE:
    case SIGPROF:
    case SIGKILL:
    case SIGSTOP:
      return true;
    default:
      return !is_signal(number);
  }
}

bool is_function(const struct sigaction& a) noexcept {
  return a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN;
}

bool is_ignored_by(int number, const struct sigaction& a) noexcept {
  const bool is_usually =
      number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH;
  return a.sa_handler == SIG_IGN || (a.sa_handler == SIG_DFL && is_usually);
}

// The program has set this. A child of vfork() has its parent's memory, and none of its signals.
void heed_ignored(int number, const struct sigaction* action) {
  if (action == nullptr || !is_ignored_by(number, *action)) return;
  if (!posix::is_in_child_of_vfork()) posix::note_ignored(number);
}

template <class Answer>
Answer settled(Answer answer) {
  settle();
  return answer;
}

// As the program would have been told.
void tell_before(const struct sigaction& kernels, const asked& own, struct sigaction& told) {
  told = kernels;
  if (!is_function(kernels) || (kernels.sa_sigaction != &on_signal_of_program &&
                                kernels.sa_sigaction != &on_signal_left_alone))
    return;
  told.sa_flags = own.flags.load(std::memory_order_relaxed);
  told.sa_sigaction = own.handler.load(std::memory_order_relaxed);
}

void note_asked(asked& own, const struct sigaction& action) noexcept {
  own.flags.store(action.sa_flags, std::memory_order_relaxed);
  // Release: with it the flags. Partner: call_handler().
  own.handler.store(reinterpret_cast<three_arguments>(action.sa_sigaction),
                    std::memory_order_release);
}

int set_left_alone(int number, const struct sigaction* action, struct sigaction* before) {
  if (!is_signal(number)) return sigaction(number, action, before);
  asked& own = asked_for[static_cast<std::size_t>(number)];
  struct sigaction told {};
  {
    const os::no_signals here;
    struct sigaction kernels {};
    if (sigaction(number, nullptr, &kernels) != 0) return -1;
    tell_before(kernels, own, told);
    if (action != nullptr) {
      struct sigaction ours = *action;
      if (is_function(*action)) {
        note_asked(own, *action);
        ours.sa_sigaction = &on_signal_left_alone;
        ours.sa_flags |= SA_SIGINFO;
      }
      if (sigaction(number, &ours, nullptr) != 0) return -1;
    }
  }
  heed_ignored(number, action);
  if (before != nullptr) *before = told;
  return 0;
}

struct sigaction simple_action(sighandler_t handler, int flags) noexcept {
  struct sigaction a {};
  a.sa_handler = handler;
  a.sa_flags = flags;
  sigemptyset(&a.sa_mask);
  return a;
}

int change_one(int how, int number) {
  sigset_t one;
  sigemptyset(&one);
  return sigaddset(&one, number) != 0 ? -1 : strata_sigprocmask(how, &one, nullptr);
}

sighandler_t set_simple(int number, const struct sigaction& a) {
  if (a.sa_handler == SIG_ERR || !is_signal(number)) {
    errno = EINVAL;
    return SIG_ERR;
  }
  struct sigaction before {};
  return set_action(number, &a, &before) == 0 ? before.sa_handler : SIG_ERR;
}

}  // namespace

void settle() {
  if (detail::this_worker().owner == nullptr) return;
  posix::record* const r = posix::self_if_any();
  if (r == nullptr || !r->is_main) return;
  const posix::kept_errno keep;
  // A child of main() has its memory, and none of its signals.
  if (!posix::is_in_child_of_vfork()) posix::settle_signals(*r);
}

int set_action(int number, const struct sigaction* action, struct sigaction* before) {
  if (is_left_alone(number)) return set_left_alone(number, action, before);
  asked& own = asked_for[static_cast<std::size_t>(number)];
  struct sigaction kernels {};
  struct sigaction told {};
  int error = 0;
  // What came before is the former handler's. So are reminders, which the kernel delivers when it
  // returns from a call.
  if (action != nullptr) {
    settle();
    (void)syscall(SYS_gettid);
  }
  {
    // Handlers come in whole: none of this thread sees a half of this.
    const os::no_signals here;
    if (sigaction(number, nullptr, &kernels) != 0) return -1;
    tell_before(kernels, own, told);
    if (action != nullptr) {
      struct sigaction ours = *action;
      if (is_function(*action)) {
        any_asked.store(true, std::memory_order_relaxed);
        posix::handler_of_reminders.store(&on_signal_of_program, std::memory_order_relaxed);
        note_asked(own, *action);
        ours.sa_sigaction = &on_signal_of_program;
        ours.sa_flags = (action->sa_flags & ~reset_once) | SA_SIGINFO;
      }
      error = sigaction(number, &ours, nullptr);
    }
  }
  // The kernel throws away what is pending of an ignored one.
  if (action != nullptr && number == posix::bell::number) posix::ring_signal_taker();
  if (error != 0) return error;
  heed_ignored(number, action);
  if (before != nullptr) *before = told;
  if (action != nullptr && is_function(*action)) {
    heed_handlers_set_before();
    let_handlers_interrupt_main();
  }
  return 0;
}

void heed_handlers_set_before() {
  const detail::worker& w = detail::this_worker();
  if (w.owner == nullptr || !any_asked.load(std::memory_order_relaxed)) return;
  const posix::kept_errno keep;
  posix::begin_signal_taker();
}

void let_handlers_interrupt_main() {
  if (!any_asked.load(std::memory_order_relaxed) || detail::this_worker().owner == nullptr) return;
  const posix::record* const r = posix::self_if_any();
  // What tells handlers where it runs from where the runtime does: only the latter's sections are
  // uninterrupted. Nobody's ticks ask for it.
  if (r != nullptr && r->is_main)
    detail::this_worker().preemptible.store(true, std::memory_order_relaxed);
}

sighandler_t set_handler(int number, sighandler_t handler) {
  const bool interrupts =
      is_signal(number) &&
      interrupts_calls[static_cast<std::size_t>(number)].load(std::memory_order_relaxed);
  struct sigaction a = simple_action(handler, interrupts ? 0 : SA_RESTART);
  sigaddset(&a.sa_mask, number);
  return set_simple(number, a);
}

sighandler_t set_handler_once(int number, sighandler_t handler) {
  return set_simple(number, simple_action(handler, reset_once | SA_NODEFER | SA_INTERRUPT));
}

sighandler_t set_disposition(int number, sighandler_t disposition) {
  if (!is_signal(number)) {
    errno = EINVAL;
    return SIG_ERR;
  }
  sigset_t it;
  sigset_t before;
  sigemptyset(&it);
  sigaddset(&it, number);
  struct sigaction was {};
  const bool holds = disposition == SIG_HOLD;
  const struct sigaction a = simple_action(disposition, 0);
  // Before it is let in.
  if (set_action(number, holds ? nullptr : &a, &was) != 0) return SIG_ERR;
  if (strata_sigprocmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &it, &before) != 0) return SIG_ERR;
  return sigismember(&before, number) == 1 ? SIG_HOLD : was.sa_handler;
}

int ignore_signal(int number) {
  const struct sigaction a = simple_action(SIG_IGN, 0);
  return set_action(number, &a, nullptr);
}

int hold_signal(int number) { return change_one(SIG_BLOCK, number); }
int release_signal(int number) { return change_one(SIG_UNBLOCK, number); }

int await_signal(int number) {
  sigset_t mask;
  if (strata_sigprocmask(SIG_BLOCK, nullptr, &mask) != 0 || sigdelset(&mask, number) != 0)
    return -1;
  return strata_sigsuspend(&mask);
}

unsigned set_alarm(unsigned seconds) { return settled(alarm(seconds)); }

int set_interval_timer(__itimer_which_t which, const itimerval* time, itimerval* before) {
  return settled(setitimer(which, time, before));
}

int set_timer(timer_t timer, int flags, const itimerspec* time, itimerspec* before) {
  return settled(timer_settime(timer, flags, time, before));
}

int delete_timer(timer_t timer) { return settled(timer_delete(timer)); }

int set_interrupts(int number, int interrupts) {
  struct sigaction a {};
  if (set_action(number, nullptr, &a) != 0) return -1;
  interrupts_calls[static_cast<std::size_t>(number)].store(interrupts != 0,
                                                           std::memory_order_relaxed);
  a.sa_flags = interrupts != 0 ? a.sa_flags & ~SA_RESTART : a.sa_flags | SA_RESTART;
  return set_action(number, &a, nullptr);
}

}  // namespace strata::preload
