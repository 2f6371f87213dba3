// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/parking.hpp"

#include <array>
#include <exception>
#include <mutex>
#include <utility>

#include "os/clock.hpp"
#include "sched/outside_section.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/detail/join.hpp"
#include "threads/thread_block.hpp"
#include "threads/waiter_queue.hpp"

namespace strata::detail {

thread_local constinit thread_block* outside_block = nullptr;

namespace {

void on_deadline(timers::entry& e) noexcept { wake(static_cast<waiter&>(e), unparked::timed_out); }

std::int64_t on_look_again(timers::entry& e) noexcept {
  const parking& how = *static_cast<waiter&>(e).how;
  return how.look_again(how.look_again_argument);
}

struct request {
  const parking& how;
  waiter w;
  std::exception_ptr failure{};  // there is no deadline for it, and it does not wait
  bool is_late = false;          // its time had passed: it has let others run, and nobody knows it
};

// Null: nobody but who wakes the address. A thread of pthread.h has signals to look after in all of
// its waits.
thread_block* block_for(const parking& how) {
  thread_block* b = outside_block;
  if (this_worker().owner != nullptr)
    b = how.interruptible ? current_block() : current_block_if_any();
  if (how.interruptible) return b;
  return b != nullptr && b->extras != nullptr && b->extras->at_wake != nullptr ? b : nullptr;
}

// What has passed is no time to wait for; a clock that can be set is asked.
bool has_passed(const parking& how, const timers& clock) {
  const std::int64_t now_ns = clock.now_ns();
  return how.deadline_ns <= now_ns &&
         (how.look_again == nullptr || how.look_again(how.look_again_argument) <= now_ns);
}

// With the stack given up, or by a thread from outside: queues the waiter unless there is no reason
// to wait any more. From then on somebody may decide and continue it. Within an outside_section.
bool enqueue(request& r, timers* clock) {
  const parking& how = r.how;
  // Needed when the waiter may be gone already.
  void (*const then)(void*) = how.then;
  void* const then_argument = how.then_argument;
  waiter_queue& q = queue_of(how.address);
  q.lock.lock();
  const bool waits = how.still == nullptr || how.still(how.argument);
  if (!waits) {
    r.w.state.store(static_cast<std::uint32_t>(unparked::refused), std::memory_order_relaxed);
  } else if (const unparked early =
                 r.w.block != nullptr ? begin_wait(*r.w.block, r.w) : unparked::woken;
             early != unparked::woken) {
    r.w.state.store(static_cast<std::uint32_t>(early), std::memory_order_relaxed);
  } else {
    // A timer or an interruption may come at once; the waiter then takes itself out of the queue,
    // for which it needs the lock that we hold.
    bool queues = true;
    stack* late = nullptr;
    const bool has_end = clock != nullptr && how.deadline_ns != parking::never;
    if (has_end && has_passed(how, *clock)) {
      queues = false;
      if (r.w.decide(unparked::timed_out)) {
        r.is_late = true;
        late = r.w.who;
      }
    } else if (has_end) {
      try {
        clock->add(r.w, how.deadline_ns);
      } catch (...) {
        // As if it had not been asked to wait, unless an interruption has come first.
        queues = false;
        if (r.w.decide(unparked::refused)) {
          r.failure = std::current_exception();
          q.lock.unlock();
          return false;
        }
      }
    }
    if (queues) {
      if (how.came == nullptr) {
        q.append(r.w);
      } else if (*how.came == 0) {
        *how.came = q.append(r.w);
      } else {
        q.insert(r.w, *how.came);
      }
    }
    q.lock.unlock();
    if (then != nullptr) then(then_argument);
    // By the timers' thread it would take two wake-ups of the kernel's. Others have their turn
    // first: it may ask again and again whether they have done something.
    if (late != nullptr) make_ready(*late);
    return true;
  }
  q.lock.unlock();
  if (then != nullptr) then(then_argument);
  return false;
}

bool enqueue_outside(request& r) {
  const outside_section here;
  return enqueue(r, nullptr);
}

bool commit(stack& s, void* argument) {
  auto& r = *static_cast<request*>(argument);
  r.w.who = &s;
  r.w.home = s.home;
  s.waits_for = r.how.what;
  s.waits_at = r.how.address;
  s.waits_until = &r.w.state;
  return enqueue(r, &s.home->deadlines);
}

void take_out(waiter& w) noexcept {
  const outside_section here;
  for (;;) {
    const void* const address = w.address.load(std::memory_order_acquire);
    waiter_queue& q = queue_of(address);
    const std::lock_guard lock(q.lock);
    if (w.address.load(std::memory_order_relaxed) != address) continue;  // it was moved
    if (w.queued) q.remove(w);
    return;
  }
}

// It goes no further, and nobody is to find it any more.
bool is_given_up(const waiter& w) noexcept {
  return w.who != nullptr && w.home->waiters_are_given_up.load(std::memory_order_relaxed);
}

// Who is to go on.
struct chosen {
  waiter* w;
  stack* who;
  scheduler* host;  // ends only when we have left; null: we need not

  // Before the decision, while its runtime exists because of it: from then on that waits for us.
  // Partner: scheduler::give_up_waiters().
  static chosen announced(waiter& w) noexcept {
    stack* const who = w.who;
    return {&w, who, who != nullptr ? w.home->admit_foreign_waker() : nullptr};
  }
  // Then go_on(). False when somebody else has decided: nothing is left to do.
  [[nodiscard]] bool decide(unparked why) const noexcept {
    if (w->decide(why)) return true;
    leave();
    return false;
  }
  void go_on() const noexcept {
    if (who != nullptr) {
      make_ready(*who);
    } else {
      os::futex_wake(w->state, 1);  // by its address only
    }
    leave();
  }
  void leave() const noexcept {
    if (host != nullptr) host->foreign_waker_leaves();
  }
};

// The first at `address`, of one of `kinds`, that nobody else has decided about leaves the queue.
// Who it is, and who comes next, has to be read before the decision. False: there is none.
bool choose(waiter_queue& q, const void* address, chosen& one,
            std::uint32_t kinds = parking::every_kind) noexcept {
  waiter* next = q.first();
  while (waiter* const w = waiter_queue::from(next, address)) {
    next = w->next;
    if ((w->kinds & kinds) == 0) continue;
    // While it is still queued: from then on its runtime does not find it any more.
    one = chosen::announced(*w);
    q.remove(*w);
    if (one.decide(unparked::woken)) return true;
  }
  return false;
}

}  // namespace

std::int64_t deadline_now() noexcept {
  const worker& w = this_worker();
  return w.owner != nullptr ? w.owner->deadlines.now_ns() : os::now_ns();
}

// Found where it cannot go on, nor be forgotten, before we are done: by a timer, or with the lock
// under which begin_wait() has told of it.
bool wake(waiter& w, unparked why) noexcept {
  const chosen one = chosen::announced(w);
  if (!one.decide(why)) return false;
  one.go_on();
  return true;
}

unparked park(const parking& how) {
  const uninterrupted guard;
  request r{how, {}};
  r.w.address.store(how.address, std::memory_order_relaxed);
  r.w.fire = &on_deadline;
  r.w.how = &how;
  if (how.look_again != nullptr) r.w.put_off = &on_look_again;
  r.w.block = block_for(how);
  r.w.heeds_interruption =
      how.interruptible || (!how.lasts && !how.is_not_left && r.w.block != nullptr &&
                            r.w.block->extras->heeds_all.load(std::memory_order_relaxed));
  r.w.kinds = how.kinds;
  r.w.place = how.place;
  if (this_worker().owner != nullptr) {
    suspend(&commit, &r);
    stack& mine = *this_place().current;
    mine.waits_for = nullptr;
    mine.waits_until = nullptr;
  } else if (enqueue_outside(r)) {
    std::uint32_t now = waiter::waiting;
    std::int64_t deadline_ns = how.deadline_ns;
    while ((now = r.w.state.load(std::memory_order_acquire)) == waiter::waiting) {
      std::int64_t left = os::futex_forever_ns;
      if (deadline_ns != parking::never) {
        left = deadline_ns - os::now_ns();
        if (left <= 0 && how.look_again != nullptr) {
          deadline_ns = how.look_again(how.look_again_argument);
          left = deadline_ns - os::now_ns();
        }
        if (left <= 0) {
          r.w.decide(unparked::timed_out);
          continue;
        }
      }
      const auto outcome = os::blocking_futex_wait(r.w.state, waiter::waiting, left);
      if (outcome == os::futex_outcome::interrupted && (how.interruptible || how.ends_by_signal))
        r.w.decide(unparked::signalled);
    }
  }
  // Acquire: what whoever decided did before. Partner: decide().
  const auto why = static_cast<unparked>(r.w.state.load(std::memory_order_acquire));
  if (r.failure != nullptr) [[unlikely]] {
    if (r.w.block != nullptr) end_wait(*r.w.block);
    std::rethrow_exception(std::move(r.failure));
  }
  if (why == unparked::refused) return why;
  if (r.w.block != nullptr) end_wait(*r.w.block);
  if (r.is_late) return why;
  if (how.deadline_ns != parking::never && r.w.who != nullptr)
    this_place().owner->deadlines.remove(r.w);
  if (why != unparked::woken) take_out(r.w);
  const bool by_others =
      why == unparked::signalled || (why == unparked::interrupted && !how.interruptible);
  if (by_others && r.w.block != nullptr && r.w.block->extras->at_wake != nullptr)
    r.w.block->extras->at_wake(*r.w.block, why);
  return why;
}

unsigned unpark(const void* address, unsigned count, std::uint32_t kinds) noexcept {
  const outside_section here;
  const uninterrupted guard;
  unsigned woken = 0;
  while (woken < count) {
    // In portions, so that nobody waits long for the lock.
    std::array<chosen, 32> some;
    unsigned n = 0;
    {
      waiter_queue& q = queue_of(address);
      const std::lock_guard lock(q.lock);
      while (n < some.size() && woken + n < count && choose(q, address, some[n], kinds)) ++n;
    }
    for (unsigned i = 0; i < n; ++i) some[i].go_on();
    woken += n;
    if (n < some.size()) break;
  }
  return woken;
}

void unpark_at(const void* address, const parked_place& place) noexcept {
  const outside_section here;
  const uninterrupted guard;
  chosen one;
  {
    waiter_queue& q = queue_of(address);
    const std::lock_guard lock(q.lock);
    waiter* const w = place.here;
    if (w == nullptr) return;
    one = chosen::announced(*w);
    q.remove(*w);
    if (!one.decide(unparked::woken)) return;
  }
  one.go_on();
}

bool unpark_one_or(const void* address, void (*otherwise)(void*), void* argument) noexcept {
  const outside_section here;
  const uninterrupted guard;
  chosen one;
  {
    waiter_queue& q = queue_of(address);
    const std::lock_guard lock(q.lock);
    if (!choose(q, address, one)) {
      otherwise(argument);
      return false;
    }
  }
  one.go_on();
  return true;
}

void unless_awaited(const void* address, void (*f)(void*), void* argument) noexcept {
  const outside_section here;
  const uninterrupted guard;
  waiter_queue& q = queue_of(address);
  const std::lock_guard lock(q.lock);
  if (waiter_queue::from(q.first(), address) == nullptr) f(argument);
}

bool is_awaited(const void* address) noexcept {
  bool awaited = true;
  unless_awaited(
      address, [](void* answer) { *static_cast<bool*>(answer) = false; }, &awaited);
  return awaited;
}

unsigned unpark_requeue(const void* from, const void* to, bool wake_first,
                        unsigned count) noexcept {
  const outside_section here;
  const uninterrupted guard;
  waiter_queue& a = queue_of(from);
  waiter_queue& b = queue_of(to);
  waiter_queue* const low = &a < &b ? &a : &b;
  waiter_queue* const high = &a < &b ? &b : &a;
  low->lock.lock();
  if (high != low) high->lock.lock();
  unsigned n = 0;
  chosen first;
  const bool wakes = wake_first && count > 0 && choose(a, from, first);
  if (wakes) ++n;
  for (waiter* w = waiter_queue::from(a.first(), from); w != nullptr && n < count; ++n) {
    waiter* const next = waiter_queue::from(w->next, from);
    a.remove(*w);
    if (runtimes_given_up.load(std::memory_order_relaxed) != 0 && is_given_up(*w)) [[unlikely]] {
      // As take_out_all_of() does, which does not find it any more. Nobody who waits at an address
      // that is changed so has `forgotten`.
      if (w->how->deadline_ns == parking::never) forget_wait(*w);
      w = next;
      continue;
    }
    // Release: who reads the new address finds it in the new bucket. Partner: take_out().
    w->address.store(to, std::memory_order_release);
    b.append(*w);
    w = next;
  }
  if (high != low) high->lock.unlock();
  low->lock.unlock();
  if (wakes) first.go_on();
  return n;
}

}  // namespace strata::detail
