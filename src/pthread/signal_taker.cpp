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
    tell();
    if (!closes) return;
    // What had been sent by now is handled, and nothing afterwards. Not for ever: a handler may
    // wait for what the caller holds.
    for (int ms = 0; ms < 100; ++ms) {
      // Acquire: what the handlers did that ran until then. Partner: wanted().
      const std::uint32_t seen = seen_.load(std::memory_order_acquire);
      if (static_cast<std::int32_t>(seen - now) >= 0) return;
      os::blocking_futex_wait(seen_, seen, 1'000'000);
    }
  }

  // Also in a handler, which may have interrupted the first call.
  void begin() noexcept {
    if (os_thread_.load(std::memory_order_acquire) != 0) return;
    const uninterrupted guard;
    const os::no_signals here;
    const std::lock_guard lock(mutex_);
    begin_with_lock();
  }

  bool leave(const siginfo_t& info) noexcept {
    if (os_thread_.load(std::memory_order_acquire) == 0) return false;
    // Relaxed: who must not miss it runs on this OS thread, or was told by one that has since.
    left_.fetch_add(1, std::memory_order_relaxed);
    // The slots pass on what we did before, see left_signals.hpp.
    if (info.si_signo >= SIGRTMIN ? queued_.put(info)
                                  : merged_.put(static_cast<std::size_t>(info.si_signo), info)) {
      tell();
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

  // With r.more.lock: what the taker waits for has been taken.
  void tell_taken() noexcept {
    // Release: who sees the count finds the lock's word of it. Partner: await(record&, ...).
    taken_.fetch_add(1, std::memory_order_release);
    os::futex_wake(taken_, 1);
  }

 private:
  // Whose default is to be ignored, so one too many does no harm.
  static constexpr int news = SIGURG;
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
    while (os_thread_.load(std::memory_order_acquire) == 0)
      os::blocking_futex_wait(seen_, 0, 1'000'000);
  }

  void tell() const noexcept {
    const pid_t it = os_thread_.load(std::memory_order_acquire);
    if (it != 0) syscall(SYS_tgkill, getpid(), it, news);
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
    // Acquire: with the counts. Partner: change(), which tells us once we can be told.
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
  void handle_here(siginfo_t& info) {
    syscall(SYS_rt_tgsigqueueinfo, getpid(), os_thread_.load(std::memory_order_relaxed),
            info.si_signo, &info);
    let_in(info.si_signo);
  }

  // News has the same number: none must be taken for it, nor it for news.
  void handle(siginfo_t& info) {
    if (info.si_signo != news) return handle_here(info);
    const sigset_t it = only(news);
    const timespec at_once{0, 0};
    while (sigtimedwait(&it, nullptr, &at_once) > 0) {
    }
    handle_here(info);
    tell();
  }

  // ---- to whom it goes ----

  struct offer : signal_offer {
    explicit offer(const siginfo_t& what) noexcept
        : signal_offer{what.si_signo, false}, info(what) {}
    const siginfo_t& info;
    bool to_who_waits = false;  // and to nobody else
    // Whether main() can be reminded: while the kernel has called a handler there that blocks this
    // one, it is as good as blocked; where nobody else takes it, main() comes to it afterwards.
    bool heeds_handlers = false;
    bool reminds = false;
    bool has_woken = false;
    pthread_t thread{};
  };

  static bool accepts(record& r, void* argument) {
    auto& o = *static_cast<offer*>(argument);
    const holding lock(r.more.lock);
    if ((r.life.load(std::memory_order_relaxed) & record::ended) != 0 || r.is_os_thread ||
        r.body != &r || has_signal(r.blocked, o.info.si_signo) ||
        (o.to_who_waits && r.more.parked == nullptr))
      return false;
    if (o.heeds_handlers && !o.reminds && is_in_handler(r, o.number)) return false;
    if (!add_pending(r, o.info)) return false;
    if (o.reminds) return true;
    o.thread = handle_of(r);
    r.offer = &o;
    r.more.signalled.store(true, std::memory_order_relaxed);
    if (r.more.parked != nullptr) o.has_woken = wake(*r.more.parked, unparked::signalled);
    return true;
  }

  static bool is_in_handler(const record& r, int number) noexcept {
    // Seq_cst: see will_handle().
    return r.is_main &&
           (r.added_by_handlers.load(std::memory_order_seq_cst) & signal_bit(number)) != 0;
  }

  static record* find_thread(offer& o) {
    // Acquire: the record as run_main() has prepared it, see preload/start.cpp.
    record* const main = main_record.load(std::memory_order_acquire);
    if (main != nullptr && accepts(*main, &o)) return main;
    o.to_who_waits = true;
    if (record* const r = first_record(&accepts, &o)) return r;
    o.to_who_waits = false;
    if (record* const r = first_record(&accepts, &o)) return r;
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
        const bool has_ended =
            !is_still(r, o.thread) || (r.life.load(std::memory_order_relaxed) & record::ended) != 0;
        if (has_ended || left_ns <= 0) {
          if (r.offer == &o) r.offer = nullptr;
          if (has_ended) return fate::to_be_offered;
          const bool is_blocked = has_signal(r.blocked, o.number);  // since then
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

  // With r.more.lock. False: the kernel has called a handler for main() meanwhile that blocks it.
  // We say that we begin, and look whether one runs there; call_on_main() says that one does, and
  // looks whether we have begun.
  static bool will_handle(record& r, const offer& o, const struct sigaction& how) noexcept {
    r.blocked_elsewhere.store(blocked_by(o.number, how), std::memory_order_relaxed);
    // Seq_cst, before the look, and with what it blocks: else each could miss the other. Partner:
    // call_on_main() in preload/handlers.cpp.
    r.handled_elsewhere.store(true, std::memory_order_seq_cst);
    if (!o.heeds_handlers || !is_in_handler(r, o.number)) return true;
    r.handled_elsewhere.store(false, std::memory_order_release);
    return false;
  }

  // All have blocked it, or main() for as long as one of its handlers lasts: it is main()'s when it
  // is unblocked, which natively the process's would be.
  static fate keep_for_main(const siginfo_t& info) {
    record* const main = main_record.load(std::memory_order_acquire);
    if (main == nullptr) return fate::ours;
    const holding lock(main->more.lock);
    if (main->is_os_thread || (main->life.load(std::memory_order_relaxed) & record::ended) != 0)
      return fate::ours;
    if (main->waits_for_signal && has_signal(main->awaited, info.si_signo)) {
      forward_to_waiter(*main, info);
      return fate::taken;
    }
    if (!has_signal(main->blocked, info.si_signo)) return fate::to_be_offered;
    (void)add_pending(*main, info);
    return fate::taken;
  }

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
    siginfo_t info{};
    info.si_signo = number;
    info.si_code = SI_QUEUE;
    info.si_value.sival_ptr = const_cast<char*>(&mark_of_reminders);
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
      if (r != nullptr && o.reminds) {
        can_remind = remind(o.number);  // the kernel may have no room for one of its kind
        if (can_remind || !take_back(info)) return;
        continue;
      }
      if (r != nullptr && !o.has_woken) tell_waiters();
      const fate what = r != nullptr ? await(*r, o, info, how) : keep_for_main(info);
      if (what == fate::to_be_offered) continue;
      if (what == fate::ours) r != nullptr ? handle_for(*r, o, info, how) : handle(info);
      return;
    }
  }

  // A round: what had been left when it began has been passed on when it ends. It ends however fast
  // more is left: that is followed by news.
  void pass_on_what_was_left() {
    // Acquire: with what was put before. Partner: left_by_now().
    const std::uint32_t round = rounds_begun_.fetch_add(1, std::memory_order_acquire) + 1;
    siginfo_t info;
    const auto pass = [&] {
      pass_on(info, true);
      is_passed_on();
    };
    for (std::size_t number = 0; merged_.take_from(number, info);) pass();
    for (std::uint32_t i = 0; i < decltype(queued_)::room && queued_.take(info); ++i) pass();
    // Release: with what the handlers did. Partner: await().
    rounds_ended_.store(round, std::memory_order_release);
    tell_waiters();
  }

  [[noreturn]] void run() {
    pthread_setname_np(pthread_self(), "strata-signals");
    // Release: from now on we can be told, and have our name. Partners: the loads of os_thread_.
    os_thread_.store(static_cast<pid_t>(syscall(SYS_gettid)), std::memory_order_release);
    sigset_t set = wanted();
    for (;;) {
      // One handler after the other: none interrupts us or another one, but where we let it.
      sigset_t all = set;
      sigaddset(&all, news);
      siginfo_t info;
      const int number = sigwaitinfo(&all, &info);
      if (number > 0 && has_signal(set, number) && !is_news(info)) pass_on(info, false);
      if (number != news) continue;
      pass_on_what_was_left();
      const timespec at_once{0, 0};
      while (sigtimedwait(&set, &info, &at_once) > 0) {
        is_news(info) ? pass_on_what_was_left() : pass_on(info, false);
      }
      set = wanted();
    }
  }

  static bool is_news(const siginfo_t& info) noexcept {
    return info.si_signo == news && info.si_code == SI_TKILL && info.si_pid == getpid();
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
  merged_signals<siginfo_t> merged_;
  queued_signals<siginfo_t> queued_;
  std::atomic<pid_t> os_thread_{0};  // 0: none that can be told. Stored by run(), once
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

void settle_signals(record& r) {
  if (taker* const t = the_taker.load(std::memory_order_acquire)) t->settle(r);
}

void tell_taken(record& r, int number) noexcept {
  if (r.offer == nullptr || r.offer->number != number) return;
  r.offer->taken = true;
  r.offer = nullptr;
  the_taker.load(std::memory_order_acquire)->tell_taken();
}

void forget_signal_taker() noexcept {
  // What was unblocked is counted anew by those who unblock.
  taker* const parents = the_taker.load(std::memory_order_relaxed);
  // Release: who finds it finds it whole. Partners: the loads of the_taker.
  if (parents != nullptr) the_taker.store(new taker(parents), std::memory_order_release);
}

}  // namespace strata::detail::posix
