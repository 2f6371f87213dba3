// SPDX-License-Identifier: Apache-2.0
// Workers that sleep, threads that bring work, and threads that borrow a sleeper's place. The steps
// are those of scheduler::sleep(), inject() and run_as_guest(), with a counter for the work.
//
// Whoever sleeps for ever is a deadlock, which Relacy reports.
#pragma once
#include "explore.hpp"
#include "model_fences.hpp"
#include "model_futex.hpp"
//
#include <atomic>

#include "sync/idle_set.hpp"

namespace strata::model {

// What a thread does before it sleeps, and mutations of it.
enum class before_sleep { announce_then_look, look_then_announce, announce_only };

template <template <class> class Atomic, class Futex, before_sleep Habit>
struct idle_workers {
  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr auto seq_cst = std::memory_order_seq_cst;

  explicit idle_workers(unsigned places) : idle(places) {}

  detail::idle_set<Atomic, Futex> idle;
  Atomic<int> injected{0};

  void inject() {
    injected.fetch_add(1, seq_cst);
    if (idle.anyone_parked()) idle.wake_one();
  }
  bool take() {
    int count = injected.load(relaxed);
    while (count > 0) {
      if (injected.compare_exchange_strong(count, count - 1, seq_cst, relaxed)) return true;
    }
    return false;
  }
  bool work_is_visible() { return injected.load(seq_cst) > 0; }

  // Until woken, or until `stay_awake` says so.
  template <class F>
  void sleep(unsigned place, bool guest, F stay_awake) {
    const bool early = Habit == before_sleep::look_then_announce && stay_awake();
    idle.announce(place, guest);
    const bool stay = Habit == before_sleep::announce_then_look ? stay_awake() : early;
    if (stay && idle.cancel(place, guest)) return;
    idle.wait(place, guest);
  }
};

// Workers that end when they have had one piece of work each, and threads that bring as many.
template <int Workers, int Producers, template <class> class Atomic = futex_atomic,
          class Futex = model_futex, before_sleep Habit = before_sleep::announce_then_look>
struct idle_producers : rl::test_suite<idle_producers<Workers, Producers, Atomic, Futex, Habit>,
                                       Workers + Producers> {
  idle_workers<Atomic, Futex, Habit> pool{Workers};

  void thread(unsigned self) {
    if (self < Workers) {
      while (!pool.take()) {
        pool.sleep(self, false, [&] { return pool.work_is_visible(); });
        RL_ASSERT(pool.idle.sleepers() < Workers);  // for we run
      }
    } else {
      for (int i = 0; i < Workers / Producers; ++i) pool.inject();
    }
  }
  void after() {
    RL_ASSERT(pool.injected.load(std::memory_order_relaxed) == 0);
    RL_ASSERT(pool.idle.sleepers() == 0);
  }
};

// What the waker wrote is visible to the woken, without any other synchronisation.
template <template <class> class Atomic = futex_atomic>
struct idle_visibility : rl::test_suite<idle_visibility<Atomic>, 2> {
  detail::idle_set<Atomic, model_futex> idle{1};
  rl::var<int> datum{0};

  void thread(unsigned self) {
    if (self == 0) {
      idle.announce(0, false);
      idle.wait(0, false);
      RL_ASSERT(datum(RL_INFO) == 1);
    } else {
      datum(RL_INFO) = 1;
      while (!idle.wake(0)) rl::yield(1, RL_INFO);
    }
  }
};

// A worker's place, in which one of three threads is at a time, who sees what the one before it
// left: the worker, one that borrows the place, and one that has its share in how they part. All
// end, and nobody sleeps then.
template <class Self, template <class> class Atomic = futex_atomic, class Futex = model_futex>
struct one_place : rl::test_suite<Self, 3> {
  idle_workers<Atomic, Futex, before_sleep::announce_then_look> pool{1};
  rl::var<int> in_the_place{0};

  void touch() { in_the_place(RL_INFO) = in_the_place(RL_INFO) + 1; }

  void thread(unsigned self) {
    auto& all = static_cast<Self&>(*this);
    self == 0 ? all.work() : self == 1 ? all.visit() : all.interfere();
  }
  void after() { RL_ASSERT(pool.idle.sleepers() == 0); }
};

// How a guest leaves the place.
enum class parting {
  hand_back,            // it leaves work for the place's own thread
  give_back,            // it looks for work that came meanwhile, when nobody was asleep to be woken
  give_back_and_forget  // mutation: it does not look
};

// A worker that needs two pieces of work, a thread that borrows its place if it can, and a thread
// that brings work.
template <parting Parting, template <class> class Atomic = futex_atomic>
struct idle_lease : one_place<idle_lease<Parting, Atomic>, Atomic> {
  using idle_lease::one_place::pool;
  using idle_lease::one_place::touch;

  void work() {
    for (int had = 0; had < 2;) {
      touch();
      if (pool.take()) {
        ++had;
      } else {
        pool.sleep(0, false, [&] { return pool.work_is_visible(); });
      }
    }
  }
  void visit() {
    const bool leased = pool.idle.lease() == 0;
    if (leased) touch();
    if (Parting == parting::hand_back) {
      if (!leased) return pool.inject();
      pool.injected.fetch_add(1, std::memory_order_seq_cst);
      pool.idle.hand_back(0);
    } else if (leased) {
      pool.idle.give_back(0);
      if (Parting == parting::give_back && pool.work_is_visible()) pool.idle.wake(0);
    }
  }
  void interfere() {
    pool.inject();
    if (Parting != parting::hand_back) pool.inject();
  }
};

// When a waker takes something out of a sleeper's place, and a mutation.
enum class taking { before_it_goes_on, when_it_is_awake };

// A third thread wants to be in the place, and takes the worker out of its sleep for that. Its
// steps are those of scheduler::stack_of_a_sleeper().
template <taking Taking>
struct idle_taken_from : one_place<idle_taken_from<Taking>> {
  using idle_taken_from::one_place::pool;
  using idle_taken_from::one_place::touch;

  void work() {
    for (touch(); !pool.take(); touch())
      pool.sleep(0, false, [&] { return pool.work_is_visible(); });
  }
  void visit() {
    if (pool.idle.lease() == 0) {
      touch();
      pool.idle.hand_back(0);
    }
    pool.inject();
  }
  void interfere() {
    if (Taking == taking::before_it_goes_on) {
      pool.idle.wake(0, [&] { touch(); });
    } else if (pool.idle.wake(0)) {
      touch();
    }
  }
};

// A guest that sleeps in the borrowed place until a third thread completes what it waits for.
template <template <class> class Atomic = futex_atomic, class Futex = model_futex>
struct idle_guest : one_place<idle_guest<Atomic, Futex>, Atomic, Futex> {
  using idle_guest::one_place::in_the_place;
  using idle_guest::one_place::pool;
  Atomic<int> guest_is_in{0};
  Atomic<int> completed{0};
  rl::var<int> result{0};

  static constexpr auto acquire = std::memory_order_acquire;
  static constexpr auto seq_cst = std::memory_order_seq_cst;

  void work() {
    for (;;) {
      in_the_place(RL_INFO) = 0;
      if (pool.take()) return;
      pool.sleep(0, false, [&] { return pool.work_is_visible(); });
    }
  }
  void visit() {
    while (pool.idle.lease() != 0) rl::yield(1, RL_INFO);
    guest_is_in.store(1, std::memory_order_release);
    while (completed.load(acquire) == 0) {
      in_the_place(RL_INFO) = 1;
      pool.sleep(0, true, [&] { return completed.load(seq_cst) != 0; });
      RL_ASSERT(pool.idle.sleepers() == 0);
    }
    RL_ASSERT(result(RL_INFO) == 1);
    in_the_place(RL_INFO) = 1;
    pool.injected.fetch_add(1, seq_cst);
    pool.idle.hand_back(0);
  }
  void interfere() {
    while (guest_is_in.load(acquire) == 0) rl::yield(1, RL_INFO);
    result(RL_INFO) = 1;
    completed.store(1, seq_cst);
    pool.idle.wake(0);
  }
};

// Who tells those who wait that nothing moves any more, and a mutation.
enum class teller { who_is_first, who_has_seen_it };

// Two workers that fall asleep, one of which tells those who wait that nothing moves any more.
// These go on then. The steps are those of scheduler::sleep().
template <teller Teller>
struct idle_tellers : rl::test_suite<idle_tellers<Teller>, 2> {
  detail::idle_set<futex_atomic, model_futex> idle{2};
  model_atomic<int> told{0};

  void thread(unsigned self) {
    idle.announce(self, false);
    const std::uint64_t still = idle.tally();
    if (idle.sleepers_of(still) != 2) return;
    const auto awake = idle.cancel(self, false);
    RL_ASSERT(awake);
    if (Teller == teller::who_has_seen_it || *awake == still)
      RL_ASSERT(told.fetch_add(1, std::memory_order_relaxed) == 0);
  }
  void after() { RL_ASSERT(told.load(std::memory_order_relaxed) == 1); }
};

// What a guest does when it has gone, and a mutation.
enum class departure { looks, looks_no_more };
// How one finds out that all is done, and mutations.
enum class end_check { counts_departures, looks_once, counts_sleepers };

// A neighbour leaves something for a place that only this place takes, while a guest is just going
// from there. The steps are those of scheduler::waive(), run_as_guest() and nothing_moves().
template <departure Departure, end_check Check>
struct idle_left : rl::test_suite<idle_left<Departure, Check>, 4> {
  static constexpr auto relaxed = std::memory_order_relaxed;

  idle_workers<futex_atomic, model_futex, before_sleep::announce_then_look> pool{2};
  model_atomic<int> left{0};
  model_atomic<int> done{0};

  void own_thread() {
    const auto is_left = [&] {
      model_fences::heavy();
      return left.load(relaxed) != 0;
    };
    while (left.load(std::memory_order_acquire) == 0) pool.sleep(0, false, is_left);
    left.store(0, relaxed);
    done.store(1, relaxed);
    pool.idle.announce(0, false);
  }
  void visit() {
    const int place = pool.idle.lease(0);
    if (place < 0) return;
    if (place == 0 && left.load(std::memory_order_acquire) != 0) return pool.idle.hand_back(0);
    pool.idle.give_back(static_cast<unsigned>(place));
    if (place != 0 || Departure == departure::looks_no_more) return;
    if (pool.idle.sleepers() != 2) model_fences::heavy();
    if (left.load(relaxed) != 0) pool.idle.wake(0);
  }
  void neighbour() {
    left.store(1, std::memory_order_release);
    model_fences::light();
    if (pool.idle.is_parked(0)) pool.idle.wake(0);
    pool.idle.announce(1, false);
  }
  bool nothing_moves() {
    const std::uint64_t tally = pool.idle.tally();
    if (pool.idle.sleepers_of(tally) != 2) return false;
    if (Check == end_check::counts_sleepers) return true;
    if (left.load(relaxed) != 0) return false;
    return Check == end_check::looks_once || pool.idle.tally() == tally;
  }

  void thread(unsigned self) {
    switch (self) {
      case 0:
        return own_thread();
      case 1:
        return visit();
      case 2:
        return neighbour();
      case 3:
        if (nothing_moves()) RL_ASSERT(done.load(relaxed) == 1);
    }
  }
};

}  // namespace strata::model
