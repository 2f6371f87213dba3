// SPDX-License-Identifier: Apache-2.0
#include "pthread/signal_taker.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>

#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/no_signals.hpp"
#include "pthread/bell.hpp"
#include "pthread/held_signals.hpp"
#include "pthread/holding.hpp"
#include "pthread/left_signals.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"

namespace strata::detail::posix {
namespace {

sigset_t only(int number) noexcept {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  return one;
}

const char mark_of_reminders = 0;

siginfo_t reminder_of(int number) noexcept {
  siginfo_t info{};
  info.si_signo = number;
  info.si_code = SI_QUEUE;
  info.si_value.sival_ptr = const_cast<char*>(&mark_of_reminders);
  return info;
}

class taker {
 public:
  explicit taker(taker* forgotten = nullptr) : forgotten_(forgotten) {}

  void change(const sigset_t& more, const sigset_t& less) {
    const uninterrupted guard;
    bool closes = false;
    std::uint32_t now = 0;
    {
      // A handler that came now might want the lock.
      const os::no_signals here;
      const std::lock_guard lock(mutex_);
      for (int number = 1; number < NSIG; ++number) {
        auto& n = count_[static_cast<std::size_t>(number)];
        if (has_signal(more, number)) n.fetch_add(1, std::memory_order_relaxed);
        if (has_signal(less, number)) {
          n.fetch_sub(1, std::memory_order_relaxed);
          closes = true;
        }
      }
      // Release: with the counts. Partner: wanted().
      now = changes_.fetch_add(1, std::memory_order_release) + 1;
      begin_with_lock();
    }
    bell_.ring();
    if (!closes) return;
    // What had been sent by now is handled, and nothing afterwards. Not for ever: a handler may
    // wait for what the caller holds.
    for (int ms = 0; ms < 100; ++ms) {
      // Acquire: what the handlers did that ran until then. Partner: wanted().
      const std::uint32_t seen = seen_.load(std::memory_order_acquire);
      if (static_cast<std::int32_t>(seen - now) >= 0) return;
      if (os::blocking_futex_wait(seen_, seen, 1'000'000) == os::futex_outcome::timed_out)
        bell_.ring_again();
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
    // Relaxed: who must not miss it runs on this OS thread, or was told by one that has since.
    left_.fetch_add(1, std::memory_order_relaxed);
    if (put(info)) {
      bell_.ring();
    } else {
      is_passed_on();
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

  // The next round passes on whatever has been put by now. Release, and a change of the word though
  // it stays what it is: that round's, which comes after it, sees what was put. Partner:
  // pass_on_what_was_left().
  std::uint32_t left_by_now() noexcept {
    return rounds_begun_.fetch_add(0, std::memory_order_release) + 1;
  }

  bool await(std::uint32_t left) noexcept {
    constexpr std::int64_t moment_ns = 100'000;
    // Acquire, and before the looks: what happens since wakes us. Partner: tell_waiters().
    const std::uint32_t seen = events_.load(std::memory_order_acquire);
    // Acquire, both: what the handlers did. Partners: is_passed_on(), pass_on_what_was_left().
    if (left_.load(std::memory_order_acquire) == 0) return false;
    if (static_cast<std::int32_t>(rounds_ended_.load(std::memory_order_acquire) - left) >= 0)
      return false;
    const uninterrupted guard;
    os::blocking_futex_wait(events_, seen, moment_ns);
    return true;
  }

  void ring() noexcept { bell_.ring_again(); }

  // With r.more.lock: what the taker waits for has been taken, or declined.
  void tell_taken() noexcept {
    // Release: who sees the count finds the lock's word of it. Partner: await(record&, ...).
    taken_.fetch_add(1, std::memory_order_release);
    os::futex_wake(taken_, 1);
  }

 private:
  // As long as a thread that can come at once has for it.
  static constexpr std::int64_t in_time_ns = 5'000'000;

  void begin_with_lock() noexcept {
    if (begun_) return;
    try {
      std::thread([this] { run(); }).detach();
      begun_ = true;
    } catch (const std::exception&) {  // refused; there may be room for it later
      return;
    }
    // Until it can be told of something.
    while (bell_.sleeper() == 0) os::blocking_futex_wait(seen_, 0, 1'000'000);
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

  // Of what concerns those in await(): something is offered, or passed on.
  void tell_waiters() noexcept {
    // Release: who sees the count sees what is new. Partner: await().
    events_.fetch_add(1, std::memory_order_release);
    os::futex_wake(events_, INT32_MAX);
  }

  void is_passed_on() noexcept {
    // Release: with what its handler did. Partner: await().
    if (left_.fetch_sub(1, std::memory_order_release) == 1) tell_waiters();
  }

  sigset_t wanted() {
    // Acquire: with the counts. Partner: change(), which rings once we can be told.
    const std::uint32_t now = changes_.load(std::memory_order_acquire);
    sigset_t set;
    sigemptyset(&set);
    for (int number = 1; number < NSIG; ++number) {
      if (count_[static_cast<std::size_t>(number)].load(std::memory_order_relaxed) != 0)
        sigaddset(&set, number);
    }
    // Release: what came before that change has been handled. Partner: change().
    seen_.store(now, std::memory_order_release);
    os::futex_wake(seen_, 1);
    return set;
  }

  // Once more for us alone, with all that the sender has said.
  void handle(siginfo_t& info) {
    if (info.si_signo == bell::number) bell_.quieten();
    (void)raise_here(info);
  }

  // ---- to whom it goes ----

  struct offer : signal_offer {
    explicit offer(const siginfo_t& what) noexcept
        : signal_offer{what.si_signo, false, false}, info(what) {}
    const siginfo_t& info;
    bool to_who_waits = false;  // and to nobody else
    // Only to who runs its handler, which it interrupts, or comes after: we do not run it beside.
    bool nests = false;
    bool is_run_by_some = false;  // who could take it otherwise
    // Whether main() can be reminded: while the kernel has called a handler there that blocks this
    // one, it is as good as blocked; where nobody else takes it, main() comes to it afterwards.
    bool heeds_handlers = false;
    bool reminds = false;
    bool has_woken = false;
    pthread_t thread{};
  };

  // With r.more.lock.
  static bool could_take(const record& r, int number) noexcept {
    return (r.life.load(std::memory_order_relaxed) & record::ended) == 0 && !r.is_os_thread &&
           r.body == &r && !has_signal(r.blocked, number);
  }

  static bool accepts(record& r, void* argument) {
    auto& o = *static_cast<offer*>(argument);
    const holding lock(r.more.lock);
    if (!could_take(r, o.number) || (o.to_who_waits && r.more.parked == nullptr)) return false;
    if (!o.reminds) {
      const bool runs = runs_beside(r, o);
      o.is_run_by_some = o.is_run_by_some || runs;
      if (runs != o.nests || (o.heeds_handlers && is_in_handler(r, o.number))) return false;
    }
    if (!add_pending(r, o.info)) return false;
    if (o.reminds) return true;
    o.thread = handle_of(r);
    if (!o.nests) r.offer = &o;
    r.more.signalled.store(true, std::memory_order_relaxed);
    if (r.more.parked != nullptr) o.has_woken = wake(*r.more.parked, unparked::signalled);
    return true;
  }

  static bool is_in_handler(const record& r, int number) noexcept {
    // Seq_cst: see will_handle().
    return r.is_main &&
           (r.added_by_handlers.load(std::memory_order_seq_cst) & signal_bit(number)) != 0;
  }

  // We would run a handler beside itself in place of r; not where main() would have to be reminded
  // for that, and cannot be.
  static bool runs_beside(const record& r, const offer& o) noexcept {
    return (!r.is_main || o.heeds_handlers) && runs_handler_of(r, o.number);
  }

  static record* find_thread(offer& o) {
    // Acquire: the record as run_main() has prepared it, see preload/start.cpp.
    record* const main = main_record.load(std::memory_order_acquire);
    for (const bool nests : {false, true}) {
      if (nests && !o.is_run_by_some) break;
      o.nests = nests;
      if (main != nullptr && accepts(*main, &o)) return main;
      for (const bool to_who_waits : {true, false}) {
        o.to_who_waits = to_who_waits;
        if (record* const r = first_record(&accepts, &o)) return r;
      }
    }
    o.reminds = main != nullptr && is_in_handler(*main, o.number);
    return o.reminds && accepts(*main, &o) ? main : nullptr;
  }

  enum class fate : std::uint8_t { taken, to_be_offered, ours };

  // Records are used again, and signals come again: then r has one more, which its thread will
  // find.
  fate await(record& r, offer& o, siginfo_t& info, const struct sigaction& how) {
    const std::int64_t end_ns = os::now_ns() + in_time_ns;
    const sigset_t it = only(o.number);
    for (;;) {
      // Acquire, and before the look: a change since wakes us. Partner: tell_taken().
      const std::uint32_t seen = taken_.load(std::memory_order_acquire);
      const std::int64_t left_ns = end_ns - os::now_ns();
      {
        const holding lock(r.more.lock);
        if (o.taken) return fate::taken;
        if (o.declined) return fate::to_be_offered;
        const bool has_ended =
            !is_still(r, o.thread) || (r.life.load(std::memory_order_relaxed) & record::ended) != 0;
        if (has_ended || left_ns <= 0) {
          if (r.offer == &o) r.offer = nullptr;
          if (has_ended) return fate::to_be_offered;
          const bool is_blocked = has_signal(r.blocked, o.number) || runs_beside(r, o);  // by now
          (void)take_pending(r, it, info);
          // Who was not woken has nothing that ends its next wait.
          if (!o.has_woken) r.more.signalled.store(has_to_handle(r), std::memory_order_relaxed);
          if (is_blocked) return fate::to_be_offered;
          return will_handle(r, o, how) ? fate::ours : fate::to_be_offered;
        }
      }
      os::blocking_futex_wait(taken_, seen, left_ns);
    }
  }

  // With r.more.lock. False: the kernel has called a handler for main() meanwhile that blocks it,
  // or this very one. We say that we begin, and look whether one runs there; call_on_main() says
  // that one does, and looks whether we have begun.
  static bool will_handle(record& r, const offer& o, const struct sigaction& how) noexcept {
    // Its own, too, where it does not block it: it may be interrupted by another, but in the thread
    // that it runs in.
    r.blocked_elsewhere.store(blocked_by(o.number, how) | signal_bit(o.number),
                              std::memory_order_relaxed);
    // Seq_cst, before the look, and with what it blocks: else each could miss the other. Partner:
    // call_on_main() in preload/handlers.cpp.
    r.handled_elsewhere.store(true, std::memory_order_seq_cst);
    if (!o.heeds_handlers || (!is_in_handler(r, o.number) && !runs_beside(r, o))) return true;
    r.handled_elsewhere.store(false, std::memory_order_release);
    return false;
  }

  // ---- what nobody takes ----

  static bool would_take(record& r, void* argument) {
    const holding lock(r.more.lock);
    return could_take(r, *static_cast<const int*>(argument));
  }

  // To a thread that waits for such a one: what is held.
  static bool gets_what_it_awaits(record& r, void* argument) {
    auto& info = *static_cast<siginfo_t*>(argument);
    const int number = info.si_signo;
    const holding lock(r.more.lock);
    if (!r.waits_for_signal || !has_signal(r.awaited, number)) return false;
    if (take_held(only(number), info) != 0) forward_to_waiter(r, info);
    return true;
  }

  // It stays pending for the process.
  fate hold(siginfo_t& info) {
    int number = info.si_signo;
    if (is_others(number)) {
      return_to_process(info);
      return fate::taken;
    }
    hold_signal(info);
    // Whoever stopped blocking it, or began to wait for it, before it was there has not seen it.
    if (first_record(&gets_what_it_awaits, &info) != nullptr) return fate::taken;
    if (first_record(&would_take, &number) == nullptr) return fate::taken;
    return take_held(only(number), info) != 0 ? fate::to_be_offered : fate::taken;
  }

  void offer_what_is_held() {
    const std::uint64_t held = held_signals();
    for (int number = 1; held != 0 && number < NSIG; ++number) {
      siginfo_t info;
      while ((held & signal_bit(number)) != 0 && first_record(&would_take, &number) != nullptr &&
             take_held(only(number), info) != 0)
        pass_on(info, false);
    }
  }

  // Where main() is an OS thread like others, whose masks we do not know, and no thread of ours has
  // it unblocked any more. The bell's would come back to us at once.
  bool is_others(int number) const noexcept {
    // Relaxed: a change of the count is followed by a ring.
    return number != bell::number && main_record.load(std::memory_order_acquire) == nullptr &&
           count_[static_cast<std::size_t>(number)].load(std::memory_order_relaxed) == 0;
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
    const std::uint64_t held = held_signals();
    for (int number = 1; held != 0 && number < NSIG; ++number) {
      siginfo_t info;
      while ((held & signal_bit(number)) != 0 && is_others(number) &&
             take_held(only(number), info) != 0)
        return_to_process(info);
    }
  }

  // ---- for a thread that does not come to it ----

  void handle_for(record& r, const offer& o, siginfo_t& info, const struct sigaction& how) {
    handle(info);
    const holding lock(r.more.lock);
    r.handlers_run.fetch_add(1, std::memory_order_relaxed);
    if (o.has_woken && is_still(r, o.thread) && (how.sa_flags & SA_RESTART) == 0)
      r.ends_by_elsewhere = true;
    // Release: it sees what the handler did. Partner: deliver_signals().
    r.handled_elsewhere.store(false, std::memory_order_release);
  }

  // It is pending for main() already.
  [[nodiscard]] static bool remind(int number) noexcept {
    siginfo_t info = reminder_of(number);
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), number, &info) == 0;
  }

  // The handler has ended, and main() is not where this one's could run: what is pending for it is
  // the process's once more. False: it has been handled.
  [[nodiscard]] static bool take_back(siginfo_t& info) {
    record* const main = main_record.load(std::memory_order_acquire);
    if (main == nullptr) return false;
    const holding lock(main->more.lock);
    return take_pending(*main, only(info.si_signo), info) != 0;
  }

  void pass_on(siginfo_t& info, bool had_handler) {
    if (is_reminder(info) && !take_back(info)) return;
    bool can_remind = true;
    for (;;) {
      struct sigaction how {};
      if (!is_handled(info.si_signo, how)) {
        // What comes too late for its handler does not end the process.
        if (!had_handler) handle(info);
        return;
      }
      offer o(info);
      // Relaxed: a pointer to code, compared and not used.
      o.heeds_handlers =
          can_remind && how.sa_sigaction == handler_of_reminders.load(std::memory_order_relaxed);
      record* const r = find_thread(o);
      if (r != nullptr && (o.reminds || (o.nests && r->is_main && !o.has_woken))) {
        can_remind = remind(o.number);  // the kernel may have no room for one of its kind
        if (can_remind || !take_back(info)) return;
        continue;
      }
      if (r != nullptr && o.nests) return;
      if (r != nullptr && !o.has_woken) tell_waiters();
      const fate what = r != nullptr ? await(*r, o, info, how) : hold(info);
      if (what == fate::to_be_offered) continue;
      if (what == fate::ours) handle_for(*r, o, info, how);
      return;
    }
  }

  // What comes by the bell's number we may have not asked for: all may have blocked it.
  void take_up(siginfo_t& info) {
    int number = info.si_signo;
    if (has_signal(set_, number) || first_record(&would_take, &number) != nullptr ||
        hold(info) == fate::to_be_offered)
      pass_on(info, false);
  }

  // A round: what had been left when it began has been passed on when it ends. It ends however fast
  // more is left: that is followed by a ring.
  void pass_on_what_was_left() {
    // Acquire: with what was put before. Partner: left_by_now().
    const std::uint32_t round = rounds_begun_.fetch_add(1, std::memory_order_acquire) + 1;
    siginfo_t info;
    const auto pass = [&] {
      pass_on(info, true);
      is_passed_on();
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
    // Release: with what the handlers did. Partner: await().
    rounds_ended_.store(round, std::memory_order_release);
    tell_waiters();
  }

  [[noreturn]] void run() {
    pthread_setname_np(pthread_self(), "strata-signals");
    bell_.begin();
    set_ = wanted();
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
      set_ = wanted();
      offer_what_is_held();
      return_what_is_held();
    }
  }

  std::mutex mutex_;
  std::array<std::atomic<unsigned>, NSIG> count_{};
  os::futex_word changes_{0};           // of the counts
  os::futex_word seen_{0};              // of these changes, by the taker
  os::futex_word taken_{0};             // offers
  os::futex_word events_{0};            // see tell_waiters()
  std::atomic<std::uint32_t> left_{0};  // to us, and not passed on yet
  std::atomic<std::uint32_t> rounds_begun_{0};
  std::atomic<std::uint32_t> rounds_ended_{0};
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

constinit std::atomic<void (*)(int, siginfo_t*, void*)> handler_of_reminders{nullptr};

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

bool is_reminder(const siginfo_t& info) noexcept {
  return info.si_code == SI_QUEUE && info.si_value.sival_ptr == &mark_of_reminders;
}

bool is_for_taker(const siginfo_t& info) noexcept { return bell::is_marked(info); }

void ring_signal_taker() noexcept {
  if (taker* const t = the_taker.load(std::memory_order_acquire)) t->ring();
}

void settle_signals(record& r) {
  if (taker* const t = the_taker.load(std::memory_order_acquire)) t->settle(r);
}

void tell_taken(record& r, int number) noexcept {
  if (r.offer == nullptr || r.offer->number != number) return;
  r.offer->taken = true;
  r.offer = nullptr;
  the_taker.load(std::memory_order_acquire)->tell_taken();
}

void decline_offer(record& r) noexcept {
  if (r.offer == nullptr) return;
  r.offer->declined = true;
  r.offer = nullptr;
  the_taker.load(std::memory_order_acquire)->tell_taken();
}

void forget_signal_taker() noexcept {
  forget_held_signals();
  // What was unblocked is counted anew by those who unblock.
  taker* const parents = the_taker.load(std::memory_order_relaxed);
  // Release: who finds it finds it whole. Partners: the loads of the_taker.
  if (parents != nullptr) the_taker.store(new taker(parents), std::memory_order_release);
}

}  // namespace strata::detail::posix
