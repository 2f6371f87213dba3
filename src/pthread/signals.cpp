// SPDX-License-Identifier: Apache-2.0
// Signals belong to OS threads. A lightweight thread has the set that it has blocked, and what was
// sent to it: handlers run on its own stack, when it waits, comes back from a wait, or asks for
// cancellation. What is sent to the process goes to an OS thread that has not blocked it. Workers
// block all; for what one of our threads has unblocked there is the taker, which does nothing else,
// so that handlers interrupt nothing of the runtime and may post semaphores.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "os/futex.hpp"
#include "pthread/holding.hpp"
#include "pthread/record.hpp"
#include "pthread/wait.hpp"
#include "strata/blocking.hpp"

namespace strata::detail::posix {
namespace {

bool has(const sigset_t& set, int number) noexcept { return sigismember(&set, number) == 1; }

using sent_value = std::optional<sigval>;

// With r.more.lock, as all that follows.
void add_pending(record& r, int number, const sent_value& value) {
  if (value && !has(r.pending, number)) r.pending_values.emplace_back(number, *value);
  sigaddset(&r.pending, number);
}

// 0: none.
int take_pending(record& r, const sigset_t& set, sent_value& value) {
  for (int number = 1; number < NSIG; ++number) {
    if (has(r.pending, number) && has(set, number)) {
      sigdelset(&r.pending, number);
      std::erase_if(r.pending_values, [&](const auto& p) {
        if (p.first == number) value = p.second;
        return p.first == number;
      });
      return number;
    }
  }
  return 0;
}

sigset_t unblocked(const record& r) noexcept {
  sigset_t set;
  sigfillset(&set);
  for (int number = 1; number < NSIG; ++number) {
    if (has(r.blocked, number)) sigdelset(&set, number);
  }
  return set;
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
int raise_here(int number, const sent_value& value) {
  if (value) {
    if (const int error = pthread_sigqueue(pthread_self(), number, *value)) return error;
  } else if (raise(number) != 0) {
    return EINVAL;
  }
  let_in(number);
  return 0;
}

class taker {
 public:
  explicit taker(taker* forgotten = nullptr) : forgotten_(forgotten) {}

  // A thread has unblocked `more`, and blocked `less` of what it had unblocked itself.
  void change(const sigset_t& more, const sigset_t& less) {
    const uninterrupted guard;
    const std::lock_guard lock(mutex_);
    bool closes = false;
    for (int number = 1; number < NSIG; ++number) {
      auto& n = count_[static_cast<std::size_t>(number)];
      if (has(more, number)) n.fetch_add(1, std::memory_order_relaxed);
      if (has(less, number)) {
        n.fetch_sub(1, std::memory_order_relaxed);
        closes = true;
      }
    }
    const std::uint32_t now = changes_.fetch_add(1, std::memory_order_release) + 1;
    if (!begun_) std::thread([this] { run(); }).detach();
    begun_ = true;
    tell();
    if (!closes) return;
    // What had been sent by now is handled, and nothing afterwards. Not for ever: a handler may
    // wait for what the caller holds.
    for (int ms = 0; ms < 100; ++ms) {
      const std::uint32_t seen = seen_.load(std::memory_order_acquire);
      if (seen == now) return;
      os::blocking_futex_wait(seen_, seen, 1'000'000);
    }
  }

 private:
  // Whose default is to be ignored, so one too many does no harm.
  static constexpr int news = SIGURG;

  void tell() const noexcept {
    const pid_t it = os_thread_.load(std::memory_order_acquire);
    if (it != 0) syscall(SYS_tgkill, getpid(), it, news);
  }

  // Partner of the acquire: change(), which tells us once we can be told.
  sigset_t wanted() {
    const std::uint32_t now = changes_.load(std::memory_order_acquire);
    sigset_t set;
    sigemptyset(&set);
    for (int number = 1; number < NSIG; ++number) {
      if (count_[static_cast<std::size_t>(number)].load(std::memory_order_relaxed) != 0)
        sigaddset(&set, number);
    }
    seen_.store(now, std::memory_order_release);
    os::futex_wake(seen_, 1);
    return set;
  }

  // Once more for us alone, with all that the sender has said.
  void handle(int number, siginfo_t& info) {
    syscall(SYS_rt_tgsigqueueinfo, getpid(), os_thread_.load(std::memory_order_relaxed), number,
            &info);
    let_in(number);
  }

  [[noreturn]] void run() {
    pthread_setname_np(pthread_self(), "strata-signals");
    sigset_t set;
    sigfillset(&set);
    pthread_sigmask(SIG_SETMASK, &set, nullptr);
    os_thread_.store(static_cast<pid_t>(syscall(SYS_gettid)), std::memory_order_release);
    set = wanted();
    for (;;) {
      // One handler after the other: none interrupts us or another one, but where we let it.
      sigset_t all = set;
      sigaddset(&all, news);
      siginfo_t info;
      const int number = sigwaitinfo(&all, &info);
      if (number > 0 && has(set, number)) handle(number, info);
      if (number != news) continue;
      const timespec at_once{0, 0};
      for (int n = 0; (n = sigtimedwait(&set, &info, &at_once)) > 0;) handle(n, info);
      set = wanted();
    }
  }

  std::mutex mutex_;
  std::array<std::atomic<unsigned>, NSIG> count_{};
  os::futex_word changes_{0};
  os::futex_word seen_{0};
  std::atomic<pid_t> os_thread_{0};
  bool begun_ = false;
  [[maybe_unused]] taker* const forgotten_;  // what was before a fork, for those who look for leaks
};

// Never destroyed: it runs until the process ends.
std::atomic<taker*>& current_taker() {
  static std::atomic<taker*> t{new taker};
  return t;
}

// What r has unblocked beyond what it was made with, counted.
void count_opened(record& r, const sigset_t& more, const sigset_t& less) {
  current_taker().load(std::memory_order_acquire)->change(more, less);
  for (int number = 1; number < NSIG; ++number) {
    if (has(more, number)) sigaddset(&r.opened, number);
    if (has(less, number)) sigdelset(&r.opened, number);
  }
  r.opened_any = true;
}

void forward(record& r, int number) {
  sigaddset(&r.forwarded, number);
  pthread_kill(r.signal_waiter, number);
}

// What sigwait() does, until the thread that it is for is cancelled: the kernel knows nothing of
// that. 0: it was.
int await_signal(const record& r, const sigset_t& wanted) {
  constexpr timespec look_again{0, 20'000'000};
  const bool may_end = !r.leaving && r.may_be_cancelled.load(std::memory_order_relaxed);
  for (;;) {
    siginfo_t info;
    const int number = sigtimedwait(&wanted, &info, may_end ? &look_again : nullptr);
    if (number > 0) return number;
    if (may_end && has_to_leave(r)) return 0;
  }
}

// On the OS thread that has waited for r: what has been forwarded to it since is r's again. With
// r.more.lock.
void take_back(record& r) {
  constexpr timespec at_once{0, 0};
  for (int number = 1; number < NSIG; ++number) {
    if (!has(r.forwarded, number)) continue;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    siginfo_t info;
    // Those for the OS thread come before those for the process. The C library does not tell which.
    while (syscall(SYS_rt_sigtimedwait, &one, &info, &at_once, (NSIG - 1) / 8) == number) {
      if (info.si_code != SI_TKILL) {
        // With all that the sender has said, if the kernel lets us.
        if (syscall(SYS_rt_sigqueueinfo, getpid(), number, &info) != 0) kill(getpid(), number);
        break;
      }
      sigaddset(&r.pending, number);
      if (!has(r.blocked, number)) r.more.signalled.store(true, std::memory_order_relaxed);
    }
  }
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
  bool for_process = false;
  {
    const holding lock(r->more.lock);
    if (!is_still(*r, thread)) return ESRCH;
    if ((r->life.load(std::memory_order_relaxed) & record::ended) != 0) return 0;
    if (number == 0) return 0;
    if (r->is_os_thread && !own) return send_to_os_thread(*r, number, value);
    if (r->waits_for_signal && has(r->awaited, number)) {
      forward(*r, number);
      return 0;
    }
    if (has(r->blocked, number) && !r->is_os_thread) {
      add_pending(*r, number, value);
      return 0;
    }
    struct sigaction how {};
    if (sigaction(number, nullptr, &how) != 0) return EINVAL;
    const bool handled = how.sa_handler != SIG_DFL && how.sa_handler != SIG_IGN;
    if (handled && !own && r->body == r) {
      add_pending(*r, number, value);
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
  return raise_here(number, value);
}

}  // namespace

void deliver_signals(record& r) {
  r.restarts = true;
  for (;;) {
    int number = 0;
    sent_value value;
    {
      const holding lock(r.more.lock);
      r.more.signalled.store(false, std::memory_order_relaxed);
      number = take_pending(r, unblocked(r), value);
    }
    if (number == 0) return;
    struct sigaction how {};
    if (sigaction(number, nullptr, &how) == 0 && (how.sa_flags & SA_RESTART) == 0)
      r.restarts = false;
    (void)raise_here(number, value);
  }
}

void take_broken_pipe() {
  if (this_worker().owner == nullptr) return;
  const kept_errno keep;
  record* const r = self_if_any();
  // Without the lock, since it is its own: a handler may write wherever it interrupts.
  if (r == nullptr || !has(r->blocked, SIGPIPE)) return let_in(SIGPIPE);
  constexpr timespec at_once{0, 0};
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGPIPE);
  if (sigtimedwait(&one, nullptr, &at_once) != SIGPIPE) return;
  const holding lock(r->more.lock);
  add_pending(*r, SIGPIPE, {});
}

void deliver_signals_with(record& r, const sigset_t& mask) {
  const auto exchange = [&](const sigset_t& set) {
    const holding lock(r.more.lock);
    return std::exchange(r.blocked, set);
  };
  const sigset_t own = exchange(mask);
  deliver_signals(r);
  exchange(own);
}

bool has_signals_beyond(record& r, const sigset_t& mask) noexcept {
  const holding lock(r.more.lock);
  for (int number = 1; number < NSIG; ++number) {
    if (has(r.pending, number) && !has(mask, number)) return true;
  }
  return false;
}

void inherit_signals(record& r, const record& parent) {
  r.blocked = parent.blocked;
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
}

void forget_signal_taker() noexcept {
  // Its thread is no more; what was unblocked is counted anew by those who unblock.
  current_taker().store(new taker(current_taker().load(std::memory_order_relaxed)),
                        std::memory_order_release);
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
    const holding lock(r.more.lock);
    pthread_sigmask(SIG_SETMASK, nullptr, &r.blocked);
    return 0;
  }
  if (set != nullptr && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK) return EINVAL;
  const kept_errno keep;
  record& r = self();
  sigset_t more;
  sigset_t less;
  sigemptyset(&more);
  sigemptyset(&less);
  bool changes_opened = false;
  {
    const holding lock(r.more.lock);
    const sigset_t was = r.blocked;
    for (int number = 1; set != nullptr && number < NSIG; ++number) {
      const bool listed = has(*set, number);
      if (how == SIG_SETMASK ? listed : listed && how == SIG_BLOCK) {
        if (number == SIGKILL || number == SIGSTOP) continue;
        sigaddset(&r.blocked, number);
        if (!has(r.opened, number)) continue;
        sigaddset(&less, number);
        changes_opened = true;
      } else if ((how == SIG_SETMASK || listed) && has(r.blocked, number)) {
        sigdelset(&r.blocked, number);
        if (has(r.opened, number)) continue;
        sigaddset(&more, number);
        changes_opened = true;
      }
    }
    if (before != nullptr) *before = was;
  }
  if (set == nullptr) return 0;
  // What interrupts main() in a call of the kernel is what comes to the thread that the process
  // began with.
  if (r.is_main && is_process_thread()) pthread_sigmask(how, set, nullptr);
  if (changes_opened) count_opened(r, more, less);
  deliver_signals(r);
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
  const holding lock(r.more.lock);
  for (int number = 1; number < NSIG; ++number) {
    // What waits for the process at large is pending for those who have blocked it.
    if (!has(r.blocked, number)) sigdelset(set, number);
    if (has(r.pending, number)) sigaddset(set, number);
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

int strata_sigwait(const sigset_t* set, int* number) {
  act_on_cancellation();
  const kept_errno keep;
  record& r = self();
  const sigset_t wanted = *set;
  int found = 0;
  if (r.is_os_thread) {
    found = await_signal(r, wanted);
  } else {
    const holding lock(r.more.lock);
    sent_value untold;
    found = take_pending(r, wanted, untold);
  }
  // On an OS thread that waits for nothing else; meanwhile our worker goes on.
  if (found == 0 && !r.is_os_thread) {
    strata::blocking([&] {
      sigset_t all;
      sigset_t before;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, &before);
      {
        const holding lock(r.more.lock);
        r.waits_for_signal = true;
        r.signal_waiter = pthread_self();
        r.awaited = wanted;
        sigemptyset(&r.forwarded);
        // Sent to us since we looked.
        sent_value untold;
        while (const int early = take_pending(r, wanted, untold)) forward(r, early);
      }
      found = await_signal(r, wanted);
      {
        const holding lock(r.more.lock);
        r.waits_for_signal = false;
        take_back(r);
      }
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
    });
  }
  // A signal that has been taken is not lost to a cancellation that comes at the same time.
  if (found == 0) act_on_cancellation();
  if (r.more.signalled.load(std::memory_order_relaxed)) deliver_signals(r);
  *number = found;
  return 0;
}
}
