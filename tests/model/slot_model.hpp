// SPDX-License-Identifier: Apache-2.0
// Threads that signal one sync slot.
#pragma once
#include "explore.hpp"
#include "relacy_atomic.hpp"
//
#include <cstdint>

#include "strata/detail/slot_counter.hpp"

namespace strata::model {

using detail::increment_outcome;
using detail::signal_outcome;

// Every thread writes its own datum and signals, once each round; the slot awaits all of them. Who
// fires reads all data, runs the fiber and lets the next round begin.
template <int Threads, int Rounds, template <class> class Atomic = model_atomic>
struct slot_rounds : rl::test_suite<slot_rounds<Threads, Rounds, Atomic>, Threads> {
  detail::slot_counter<Atomic> slot{Threads, Rounds > 1 ? Threads : 0};
  rl::var<int> datum[Threads];
  rl::var<int> fired{0};
  model_atomic<int> round{0};

  void thread(unsigned self) {
    for (int r = 0; r < Rounds; ++r) {
      while (round.load(std::memory_order_acquire) != r) rl::yield(1, RL_INFO);
      datum[self](RL_INFO) = 10 * r + static_cast<int>(self);
      const signal_outcome outcome = slot.signal();
      RL_ASSERT(outcome == signal_outcome::pending || outcome == signal_outcome::fired);
      if (outcome == signal_outcome::pending) continue;
      RL_ASSERT(slot.queued());
      RL_ASSERT(fired(RL_INFO) == r);
      fired(RL_INFO) = r + 1;
      for (int i = 0; i < Threads; ++i) RL_ASSERT(datum[i](RL_INFO) == 10 * r + i);
      slot.begin();
      RL_ASSERT(!slot.queued());
      round.store(r + 1, std::memory_order_release);
    }
  }
  void after() { RL_ASSERT(fired(RL_INFO) == Rounds); }
};

// Signals that wait for nobody: every `Count`-th fires, whoever sends it. The fibers begin late, so
// several firings are queued at once.
template <int Threads, int Signals, std::uint32_t Count,
          template <class> class Atomic = model_atomic>
struct slot_flood : rl::test_suite<slot_flood<Threads, Signals, Count, Atomic>, Threads> {
  detail::slot_counter<Atomic> slot{Count, Count};
  model_atomic<int> fired{0};

  void thread(unsigned) {
    int mine = 0;
    for (int i = 0; i < Signals; ++i) {
      const signal_outcome outcome = slot.signal();
      RL_ASSERT(outcome == signal_outcome::pending || outcome == signal_outcome::fired);
      mine += outcome == signal_outcome::fired;
    }
    fired.fetch_add(mine, std::memory_order_relaxed);
    for (int i = 0; i < mine; ++i) {
      RL_ASSERT(slot.queued());
      slot.begin();
    }
  }
  void after() {
    constexpr int all = Threads * Signals;
    RL_ASSERT(fired.load(std::memory_order_relaxed) == all / static_cast<int>(Count));
    RL_ASSERT(slot.count() == Count - static_cast<std::uint32_t>(all) % Count);
    RL_ASSERT(!slot.queued());
  }
};

// One signal too many for a slot that is not reset: exactly one firing, and the others hear of it.
template <int Threads, template <class> class Atomic = model_atomic>
struct slot_excess : rl::test_suite<slot_excess<Threads, Atomic>, Threads> {
  detail::slot_counter<Atomic> slot{Threads - 1, 0};
  model_atomic<int> fired{0};
  model_atomic<int> excess{0};

  void thread(unsigned) {
    switch (slot.signal()) {
      case signal_outcome::fired:
        fired.fetch_add(1, std::memory_order_relaxed);
        slot.begin();
        break;
      case signal_outcome::excess:
        excess.fetch_add(1, std::memory_order_relaxed);
        break;
      case signal_outcome::pending:
        break;
      case signal_outcome::dead:
        RL_ASSERT(false);
    }
  }
  void after() {
    RL_ASSERT(fired.load(std::memory_order_relaxed) == 1);
    RL_ASSERT(excess.load(std::memory_order_relaxed) == 1);
    RL_ASSERT(slot.count() == 0);
    RL_ASSERT(!slot.queued());
  }
};

// The slot awaits more while the last signal may be on its way: either the increment is in time and
// its own signal fires, or it hears that it is too late.
template <template <class> class Atomic = model_atomic>
struct slot_increment : rl::test_suite<slot_increment<Atomic>, 2> {
  detail::slot_counter<Atomic> slot{1, 0};
  model_atomic<int> fired{0};
  rl::var<int> datum{0};

  void signal() {
    if (slot.signal() != signal_outcome::fired) return;
    fired.fetch_add(1, std::memory_order_relaxed);
    // Thread 0 always signals before the firing.
    RL_ASSERT(datum(RL_INFO) == 1);
    slot.begin();
  }
  void thread(unsigned self) {
    if (self == 0) {
      datum(RL_INFO) = 1;
      signal();
    } else if (slot.increment(1) == increment_outcome::counted) {
      signal();
    } else {
      RL_ASSERT(slot.count() == 0);
    }
  }
  void after() { RL_ASSERT(fired.load(std::memory_order_relaxed) == 1); }
};

// One closes the slot while its last signals are on their way: either it fires, or it is closed and
// fires no more, whatever else comes.
template <int Threads, template <class> class Atomic = model_atomic>
struct slot_closing : rl::test_suite<slot_closing<Threads, Atomic>, Threads> {
  static constexpr int signallers = Threads - 1;
  detail::slot_counter<Atomic> slot{signallers, 0};
  model_atomic<int> fired{0};
  rl::var<int> closed{0};

  void thread(unsigned self) {
    if (self == 0) {
      closed(RL_INFO) = slot.close() ? 1 : 0;
      return;
    }
    const signal_outcome outcome = slot.signal();
    RL_ASSERT(outcome == signal_outcome::pending || outcome == signal_outcome::fired);
    if (outcome == signal_outcome::fired) fired.fetch_add(1, std::memory_order_relaxed);
  }
  void after() {
    const bool has_fired = fired.load(std::memory_order_relaxed) != 0;
    RL_ASSERT(has_fired != (closed(RL_INFO) != 0));
    RL_ASSERT(has_fired == slot.queued());
    if (has_fired) return;
    RL_ASSERT(slot.increment(1) == increment_outcome::counted);
    for (int i = 0; i <= signallers; ++i) RL_ASSERT(slot.signal() == signal_outcome::pending);
    RL_ASSERT(!slot.queued());
  }
};

}  // namespace strata::model
