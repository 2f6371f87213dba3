// SPDX-License-Identifier: Apache-2.0
#include "pthread/signal_offers.hpp"

#include <atomic>

#include "os/clock.hpp"
#include "os/futex.hpp"
#include "pthread/holding.hpp"
#include "pthread/reminders.hpp"
#include "pthread/signals.hpp"
#include "pthread/wait.hpp"

namespace strata::detail::posix {
namespace {

// As long as a thread that can come at once has for it; main() is reminded as often.
constexpr std::int64_t in_time_ns = 5'000'000;
// What natively would interrupt main() does so here, too, where it computes: reminders find it on
// the process's first OS thread. It has so many turns there to come to it, those of other threads
// and of the runtime among them; and so many reminders, where that OS thread does not answer.
constexpr std::uint32_t reminded_in_vain_max = 20;
constexpr int reminders_max = 200;

// Counted, and what the taker sleeps on.
constinit os::futex_word offers_taken{0};

// With r.more.lock.
bool could_take(const record& r, int number) noexcept {
  return (r.life.load(std::memory_order_relaxed) & record::ended) == 0 && !r.is_os_thread &&
         r.body == &r && !has_signal(r.blocked, number);
}

// Likewise.
bool has_pending(record& r, int number) noexcept {
  return (r.pending.bits() & signal_bit(number)) != 0;
}

bool is_in_handler(const record& r, int number) noexcept {
  // Seq_cst: see will_handle().
  return r.is_main &&
         (r.added_by_handlers.load(std::memory_order_seq_cst) & signal_bit(number)) != 0;
}

// We would run a handler beside itself in place of r; not where main() would have to be reminded
// for that, and cannot be.
bool runs_beside(const record& r, const process_offer& o) noexcept {
  return (!r.is_main || o.heeds_handlers) && runs_handler_of(r, o.number);
}

bool accepts(record& r, void* argument) {
  auto& o = *static_cast<process_offer*>(argument);
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

bool would_take(record& r, void* argument) {
  const holding lock(r.more.lock);
  return could_take(r, *static_cast<const int*>(argument));
}

// With r.more.lock. False: the kernel has called a handler for main() meanwhile that blocks it,
// or this very one. We say that we begin, and look whether one runs there; call_on_main() says
// that one does, and looks whether we have begun.
bool will_handle(record& r, const process_offer& o, const struct sigaction& how) noexcept {
  // Its own, too, where it does not block it: it may be interrupted by another, but in the thread
  // that it runs in.
  r.blocked_elsewhere.store(blocked_by(o.number, how) | signal_bit(o.number),
                            std::memory_order_relaxed);
  // Seq_cst, before the look, and with what it blocks: else each could miss the other. Partner:
  // call_on_main() in preload/handler_calls.cpp.
  r.handled_elsewhere.store(true, std::memory_order_seq_cst);
  if (!o.heeds_handlers || (!is_in_handler(r, o.number) && !runs_beside(r, o))) return true;
  r.handled_elsewhere.store(false, std::memory_order_release);
  return false;
}

// With r.more.lock: what the taker waits for has been taken, or declined.
void settle_offer(record& r, bool signal_offer::*how) noexcept {
  r.offer->*how = true;
  r.offer = nullptr;
  // Release: who sees the count finds the lock's word of it. Partner: await_thread().
  offers_taken.fetch_add(1, std::memory_order_release);
  os::futex_wake(offers_taken, 1);
}

}  // namespace

bool is_wanted(int number) { return first_record(&would_take, &number) != nullptr; }

record* find_thread(process_offer& o) {
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

namespace {

// What becomes of an offer to main() that it has not come to in time.
class reminding {
 public:
  ~reminding() {
    if (sent_ != 0) end_reminding();
  }
  // False: main() has been reminded often enough, or cannot be.
  [[nodiscard]] bool is_due(const record& r, const process_offer& o) const noexcept {
    if (!r.is_main || !o.heeds_handlers || sent_ >= reminders_max) return false;
    return sent_ == 0 || reminded_in_vain() - in_vain_before_ < reminded_in_vain_max;
  }
  // If it is; without the lock of main(), which is interrupted.
  void once_more(const process_offer& o) noexcept {
    if (sent_ == 0) {
      begin_reminding(o.number);
      in_vain_before_ = reminded_in_vain();
    }
    ++sent_;
    if (!remind_main(o.number)) sent_ = reminders_max;
  }

 private:
  int sent_ = 0;
  std::uint32_t in_vain_before_ = 0;
};

}  // namespace

// Records are used again, and signals come again: then r has one more, which its thread will
// find.
fate await_thread(record& r, process_offer& o, siginfo_t& info, const struct sigaction& how) {
  std::int64_t end_ns = os::now_ns() + in_time_ns;
  reminding reminds;
  const sigset_t it = only(o.number);
  for (;;) {
    // Acquire, and before the look: a change since wakes us. Partner: settle_offer().
    const std::uint32_t seen = offers_taken.load(std::memory_order_acquire);
    const std::int64_t left_ns = end_ns - os::now_ns();
    bool is_to_be_reminded = false;
    {
      const holding lock(r.more.lock);
      if (o.taken) return fate::taken;
      if (o.declined) return fate::to_be_offered;
      const bool has_ended =
          !is_still(r, o.thread) || (r.life.load(std::memory_order_relaxed) & record::ended) != 0;
      const bool is_blocked = has_signal(r.blocked, o.number) || runs_beside(r, o);  // by now
      // It may be ignored since it was offered: then main() has nothing to come for.
      is_to_be_reminded = !has_ended && !is_blocked && left_ns <= 0 && has_pending(r, o.number) &&
                          reminds.is_due(r, o);
      if (!is_to_be_reminded && (has_ended || left_ns <= 0)) {
        if (r.offer == &o) r.offer = nullptr;
        if (has_ended) return fate::to_be_offered;
        const bool was_ignored = take_pending(r, it, info) == 0;  // since it was offered
        // Who was not woken has nothing that ends its next wait.
        if (!o.has_woken) r.more.signalled.store(has_to_handle(r), std::memory_order_relaxed);
        if (was_ignored) return fate::taken;
        if (is_blocked) return fate::to_be_offered;
        return will_handle(r, o, how) ? fate::ours : fate::to_be_offered;
      }
    }
    if (is_to_be_reminded) {
      reminds.once_more(o);
      end_ns = os::now_ns() + in_time_ns;
      continue;
    }
    os::blocking_futex_wait(offers_taken, seen, left_ns);
  }
}

void has_handled(record& r, const process_offer& o, const struct sigaction& how) {
  const holding lock(r.more.lock);
  r.handlers_run.fetch_add(1, std::memory_order_relaxed);
  if (o.has_woken && is_still(r, o.thread) && (how.sa_flags & SA_RESTART) == 0)
    r.ends_by_elsewhere = true;
  // It may have seen nothing of this one, and be about to wait for it. Partner: await_handler().
  if (r.awaits_handler) {
    r.more.signalled.store(true, std::memory_order_relaxed);
    if (r.more.parked != nullptr) (void)wake(*r.more.parked, unparked::signalled);
  }
  // Release: it sees what the handler did. Partner: deliver_signals().
  r.handled_elsewhere.store(false, std::memory_order_release);
}

void tell_taken(record& r, int number) noexcept {
  if (r.offer != nullptr && r.offer->number == number) settle_offer(r, &signal_offer::taken);
}

void decline_offer(record& r) noexcept {
  if (r.offer != nullptr) settle_offer(r, &signal_offer::declined);
}

}  // namespace strata::detail::posix
