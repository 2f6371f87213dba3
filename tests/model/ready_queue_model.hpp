// SPDX-License-Identifier: Apache-2.0
// An owner that pushes and takes from its ready queue, and thieves that take half of it. The steps
// are those of strata/detail/ready_queue.hpp and have to follow them; the ring is four plain
// variables, so that whoever is inside beside another is a data race.
#pragma once
#include "explore.hpp"
#include "model_fences.hpp"

namespace strata::model {

// Mutations: what the owner looks at after it has said that it is inside, and when it leaves.
enum class manners { looks_for_thieves, barges_in, leaves_early };

template <unsigned Thieves, template <class> class Atomic = model_atomic,
          class Fences = model_fences, manners Owner = manners::looks_for_thieves>
struct ready_owner_and_thieves
    : rl::test_suite<ready_owner_and_thieves<Thieves, Atomic, Fences, Owner>, 1 + Thieves> {
  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr auto acquire = std::memory_order_acquire;
  static constexpr auto release = std::memory_order_release;
  static constexpr unsigned items = 4;

  Atomic<unsigned> head{0};
  Atomic<unsigned> tail{0};
  rl::var<unsigned> ring[4];
  Atomic<int> inside{0};
  Atomic<int> wanted{0};
  Atomic<int> taken[items];
  Atomic<unsigned> current{0};
  // Of the last item, a stack: written by whoever is on it.
  rl::var<int> stack;

  // ---- owner ----
  void enter() {
    inside.store(1, relaxed);
    Fences::light();
    if (Owner != manners::barges_in && wanted.load(acquire) != 0) wait_for_thief();
  }
  void wait_for_thief() {
    do {
      inside.store(0, release);
      while (wanted.load(acquire) != 0) rl::yield(1, RL_INFO);
      inside.store(1, relaxed);
      Fences::light();
    } while (wanted.load(acquire) != 0);
  }
  void leave() { inside.store(0, release); }

  void push(unsigned item) {
    enter();
    const unsigned t = tail.load(relaxed);
    ring[t % 4](RL_INFO) = item;
    tail.store(t + 1, release);
    leave();
  }
  bool pop() {
    enter();
    const unsigned h = head.load(relaxed);
    const bool any = h != tail.load(relaxed);
    if (any) {
      run(ring[h % 4](RL_INFO));
      head.store(h + 1, relaxed);
    }
    leave();
    return any;
  }

  // The last item goes behind the next one while its stack is still in use.
  bool rotate() {
    stack(RL_INFO) = 1;
    enter();
    const unsigned h = head.load(relaxed);
    const unsigned t = tail.load(relaxed);
    const bool any = h != t;
    if (any) {
      const unsigned next = ring[h % 4](RL_INFO);
      ring[t % 4](RL_INFO) = items - 1;
      tail.store(t + 1, release);
      head.store(h + 1, relaxed);
      if (Owner == manners::leaves_early) leave();
      (void)current.exchange(next, relaxed);  // as the switch does
      stack(RL_INFO) = 2;
      if (Owner != manners::leaves_early) leave();
      run(next);
    } else {
      leave();
    }
    return any;
  }

  // ---- thieves ----
  void take_half() {
    if (wanted.exchange(1, acquire) != 0) return;
    Fences::heavy();
    bool out = false;
    for (int i = 0; i < 2 && !out; ++i) out = inside.load(acquire) == 0;
    if (out) {
      const unsigned h = head.load(relaxed);
      const unsigned n = (tail.load(relaxed) - h + 1) / 2;
      RL_ASSERT(n <= items);
      for (unsigned i = 0; i < n; ++i) run(ring[(h + i) % 4](RL_INFO));
      head.store(h + n, relaxed);
    }
    wanted.store(0, release);
  }

  void run(unsigned item) {
    RL_ASSERT(taken[item].exchange(1, relaxed) == 0);
    if (item == items - 1) stack(RL_INFO) = 3;
  }

  void thread(unsigned self) {
    if (self != 0) {
      take_half();
      take_half();
      return;
    }
    push(0);
    if (!rotate()) push(items - 1);
    push(1);
    pop();
    push(2);
    while (pop()) {
    }
  }
  void after() {
    for (auto& t : taken) RL_ASSERT(t.load(relaxed) == 1);
  }
};

}  // namespace strata::model
