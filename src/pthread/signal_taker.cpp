// SPDX-License-Identifier: Apache-2.0
#include "pthread/signal_taker.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>

#include "os/no_signals.hpp"
#include "os/own_thread.hpp"
#include "os/unbound.hpp"
#include "pthread/bell.hpp"
#include "pthread/held_signals.hpp"
#include "pthread/holding.hpp"
#include "pthread/left_rounds.hpp"
#include "pthread/left_signals.hpp"
#include "pthread/opened_counts.hpp"
#include "pthread/reminders.hpp"
#include "pthread/signal_offers.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"
#include "threads/after_fork.hpp"

namespace strata::detail::posix {
namespace {

class taker {
 public:
  explicit taker(taker* forgotten = nullptr) : forgotten_(forgotten) {}

  void change(const sigset_t& more, const sigset_t& less) {
    const uninterrupted guard;
    std::uint32_t now = 0;
    {
      // A handler that came now might want the lock.
      const os::no_signals here;
      const std::lock_guard lock(mutex_);
      now = opened_.change(more, less);
      begin_with_lock();
    }
    bell_.ring();
    if (sigisemptyset(&less) != 0) return;
    // What had been sent by now is handled, and nothing afterwards. Not for ever: a handler may
    // wait for what the caller holds.
    using enum opened_counts::outcome;
    for (int times = 0; times < 100; ++times) {
      const opened_counts::outcome what = opened_.await_seen(now);
      if (what == seen) return;
      if (what == a_moment_has_passed) bell_.ring_again();
    }
  }

  // Also in a handler, which may have interrupted the first call.
  void begin() noexcept {
    if (bell_.sleeper() != 0) return;
    const uninterrupted guard;
    const os::no_signals here;
    const std::lock_guard lock(mutex_);
    begin_with_lock();
  }

  bool leave(const siginfo_t& info) noexcept {
    if (bell_.sleeper() == 0) return false;
    rounds_.one_is_left();
    if (put(info)) {
      bell_.ring();
    } else {
      rounds_.one_is_passed_on();
    }
    return true;
  }

  void settle(record& r) {
    constexpr int often = 1000;
    const std::uint32_t left = left_by_now();
    for (int i = 0; i < often; ++i) {
      // Relaxed: what it tells of is behind the record's lock.
      if (r.more.signalled.load(std::memory_order_relaxed)) deliver_signals(r);
      if (!await(left)) return;
    }
  }

  std::uint32_t left_by_now() noexcept { return rounds_.by_now(); }

  bool await(std::uint32_t left) noexcept {
    const uninterrupted guard;
    return rounds_.await(left);
  }

  void ring() noexcept { bell_.ring_again(); }

 private:
  void begin_with_lock() noexcept {
    if (begun_) return;
    try {
      const os::unbound there;  // handlers run on it
      std::thread([this] { run(); }).detach();
      begun_ = true;
    } catch (const std::exception&) {  // refused; there may be room for it later
      return;
    }
    // Until it can be told of something.
    while (bell_.sleeper() == 0) opened_.await_first();
  }

  // False: what is there already stands for it, or there is no room. Passes on what we did before,
  // see left_signals.hpp.
  bool put(const siginfo_t& info) noexcept {
    const int number = info.si_signo;
    if (number >= SIGRTMIN) return queued_.put(info);
    if (!is_reminder(info)) return merged_.put(static_cast<std::size_t>(number), info);
    // Apart from the signal itself, which it must not stand for: what it reminds of may have been
    // handled when we come to it. Acq_rel: what was done before, also by those who are refused.
    // Partner: pass_on_what_was_left().
    return (reminded_.fetch_or(signal_bit(number), std::memory_order_acq_rel) &
            signal_bit(number)) == 0;
  }

  // Once more for us alone, with all that the sender has said.
  void handle(siginfo_t& info) {
    if (info.si_signo == bell::number) bell_.quieten();
    (void)raise_here(info);
    if (!is_current()) [[unlikely]]
      end_child_without_thread();
  }
  // Not in the child of a fork that a handler has made, which has another one.
  bool is_current() const noexcept;

  // ---- what nobody takes ----

  // To a thread that waits for such a one: what is held.
  static bool gets_what_it_awaits(record& r, void* argument) {
    auto& info = *static_cast<siginfo_t*>(argument);
    const int number = info.si_signo;
    const holding lock(r.more.lock);
    if (!r.waits_for_signal || !has_signal(r.awaited, number)) return false;
    if (take_held(only(number), info) != 0) (void)forward_to_waiter(r, info);
    return true;
  }

  // It stays pending for the process.
  fate hold(siginfo_t& info) {
    const int number = info.si_signo;
    if (is_others(number)) {
      return_to_process(info);
      return fate::taken;
    }
    hold_signal(info);
    // Whoever stopped blocking it, or began to wait for it, before it was there has not seen it.
    if (first_record(&gets_what_it_awaits, &info) != nullptr) return fate::taken;
    if (!is_wanted(number)) return fate::taken;
    return take_held(only(number), info) != 0 ? fate::to_be_offered : fate::taken;
  }

  void offer_what_is_held() {
    const std::uint64_t there = held_signals();
    for (int number = 1; there != 0 && number < NSIG; ++number) {
      siginfo_t info;
      while ((there & signal_bit(number)) != 0 && is_wanted(number) &&
             take_held(only(number), info) != 0)
        pass_on(info, false);
    }
  }

  // Where main() is an OS thread like others, whose masks we do not know, and no thread of ours has
  // it unblocked any more. The bell's would come back to us at once.
  bool is_others(int number) const noexcept {
    return number != bell::number && main_record.load(std::memory_order_acquire) == nullptr &&
           !opened_.is_opened(number);
  }

  // The kernel lets us say again what senders have said only as far as it does not vouch for it.
  void return_to_process(const siginfo_t& info) noexcept {
    const int number = info.si_signo;
    sigdelset(&set_, number);
    const bool may_be_said = info.si_code < 0 && info.si_code != SI_TKILL;
    if (!may_be_said || syscall(SYS_rt_sigqueueinfo, getpid(), number, &info) != 0)
      kill(getpid(), number);
  }

  void return_what_is_held() noexcept {
    const std::uint64_t there = held_signals();
    for (int number = 1; there != 0 && number < NSIG; ++number) {
      siginfo_t info;
      while ((there & signal_bit(number)) != 0 && is_others(number) &&
             take_held(only(number), info) != 0)
        return_to_process(info);
    }
  }

  // ---- what it does with each ----

  // A reminder has come to main() in a section of the runtime: the next one is to find it behind
  // that, also where we go before main() on its CPU.
  static void let_main_go_on() noexcept {
    constexpr timespec a_little{0, 20'000};
    nanosleep(&a_little, nullptr);
  }

  void pass_on(siginfo_t& info, bool had_handler) {
    if (is_reminder(info)) {
      if (!take_back_from_main(info)) return;
      let_main_go_on();
    }
    bool can_remind = true;
    for (;;) {
      struct sigaction how {};
      if (!is_handled(info.si_signo, how)) {
        // What comes too late for its handler does not end the process.
        if (!had_handler) handle(info);
        return;
      }
      process_offer o(info);
      // Relaxed: a pointer to code, compared and not used.
      o.heeds_handlers =
          can_remind && how.sa_sigaction == handler_of_reminders.load(std::memory_order_relaxed);
      record* const r = find_thread(o);
      if (r != nullptr && (o.reminds || (o.nests && r->is_main && !o.has_woken))) {
        can_remind = remind_main(o.number);  // the kernel may have no room for one of its kind
        if (can_remind || !take_back_from_main(info)) return;
        continue;
      }
      if (r != nullptr && o.nests) return;
      if (r != nullptr && !o.has_woken) rounds_.tell();
      const fate what = r != nullptr ? await_thread(*r, o, info, how) : hold(info);
      if (what == fate::to_be_offered) continue;
      if (what == fate::ours) {
        handle(info);
        has_handled(*r, o, how);
      }
      return;
    }
  }

  // What comes by the bell's number we may have not asked for: all may have blocked it.
  void take_up(siginfo_t& info) {
    const int number = info.si_signo;
    if (has_signal(set_, number) || is_wanted(number) || hold(info) == fate::to_be_offered)
      pass_on(info, false);
  }

  // A round: what had been left when it began has been passed on when it ends. It ends however fast
  // more is left: that is followed by a ring.
  void pass_on_what_was_left() {
    const std::uint32_t round = rounds_.begin();
    siginfo_t info;
    const auto pass = [&] {
      pass_on(info, true);
      rounds_.one_is_passed_on();
    };
    // Acq_rel: see put().
    const std::uint64_t reminded = reminded_.exchange(0, std::memory_order_acq_rel);
    for (int number = 1; reminded != 0 && number < SIGRTMIN; ++number) {
      if ((reminded & signal_bit(number)) == 0) continue;
      info = reminder_of(number);
      pass();
    }
    for (std::size_t number = 0; merged_.take_from(number, info);) pass();
    for (std::uint32_t i = 0; i < decltype(queued_)::room && queued_.take(info); ++i) pass();
    rounds_.end(round);
  }

  [[noreturn]] void run() {
    const os::own_thread here("strata-signals");
    bell_.begin();
    set_ = opened_.come_round();
    for (;;) {
      // One handler after the other: none interrupts us or another one, but where we let it.
      siginfo_t info;
      if (bell_.sleep(set_, info) != 0) {
        take_up(info);
        continue;
      }
      pass_on_what_was_left();
      while (bell_.look(set_, info) != 0) {
        take_up(info);
        if (bell_.has_rung()) pass_on_what_was_left();
      }
      set_ = opened_.come_round();
      offer_what_is_held();
      return_what_is_held();
    }
  }

  std::mutex mutex_;
  opened_counts opened_;
  left_rounds<> rounds_;
  std::atomic<std::uint64_t> reminded_{0};  // of those that are merged, as bits
  merged_signals<siginfo_t> merged_;
  queued_signals<siginfo_t> queued_;
  bell bell_;       // by which run() is woken
  sigset_t set_{};  // what it waits for; by itself
  bool begun_ = false;
  [[maybe_unused]] taker* const forgotten_;  // what was before a fork, for those who look for leaks
};

// Never destroyed: it runs until the process ends. There before the first handler is. Loaded with
// acquire everywhere: partners are the two who store it, current_taker() and forget_signal_taker().
constinit std::atomic<taker*> the_taker{nullptr};

// Relaxed: compared by the OS thread that has stored it, if another one is there.
bool taker::is_current() const noexcept {
  return the_taker.load(std::memory_order_relaxed) == this;
}

taker& current_taker() {
  taker* t = the_taker.load(std::memory_order_acquire);
  if (t != nullptr) return *t;
  auto* const fresh = new taker;
  // Release: who finds it finds it whole. Partners: the loads of the_taker.
  if (the_taker.compare_exchange_strong(t, fresh, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
    return *fresh;
  delete fresh;
  return *t;
}

}  // namespace

void count_opened(record& r, const sigset_t& more, const sigset_t& less) {
  current_taker().change(more, less);
  for (int number = 1; number < NSIG; ++number) {
    if (has_signal(more, number)) sigaddset(&r.opened, number);
    if (has_signal(less, number)) sigdelset(&r.opened, number);
  }
  r.opened_any = true;
}

void begin_signal_taker() noexcept { current_taker().begin(); }

bool leave_to_taker(const siginfo_t& info) noexcept {
  taker* const t = the_taker.load(std::memory_order_acquire);
  return t != nullptr && t->leave(info);
}

std::uint32_t left_by_now() noexcept {
  taker* const t = the_taker.load(std::memory_order_acquire);
  return t != nullptr ? t->left_by_now() : 0;
}

bool await_signal_taker(std::uint32_t left) noexcept {
  taker* const t = the_taker.load(std::memory_order_acquire);
  return t != nullptr && t->await(left);
}

bool is_for_taker(const siginfo_t& info) noexcept { return bell::is_marked(info); }

void ring_signal_taker() noexcept {
  if (taker* const t = the_taker.load(std::memory_order_acquire)) t->ring();
}

void settle_signals(record& r) {
  if (taker* const t = the_taker.load(std::memory_order_acquire)) t->settle(r);
}

void forget_signal_taker() noexcept {
  forget_held_signals();
  // What was unblocked is counted anew by those who unblock.
  taker* const parents = the_taker.load(std::memory_order_relaxed);
  // Release: who finds it finds it whole. Partners: the loads of the_taker.
  if (parents != nullptr) the_taker.store(new taker(parents), std::memory_order_release);
}

}  // namespace strata::detail::posix
