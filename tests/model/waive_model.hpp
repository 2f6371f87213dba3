// SPDX-License-Identifier: Apache-2.0
// One waives a task to its successor, which falls asleep meanwhile, and whose place may be lent
// away. The steps are those of scheduler::try_waive() and sleep().
#pragma once
#include "explore.hpp"
#include "model_fences.hpp"
#include "model_futex.hpp"
//
#include "sync/fence_before_look.hpp"
#include "sync/idle_set.hpp"
#include "sync/spsc_queue.hpp"

namespace strata::model {

// A task that is waived, and the successor.
template <class Fences>
struct waived_task {
  // Its announcement is a fence: where membarrier is refused, heavy() is one of the sleeper's own.
  detail::idle_set<fenced_futex_atomic, model_futex> idle{1};
  detail::spsc_queue<int, model_atomic> waived;
  int task = 0;

  void take() {
    while (waived.pop() == nullptr) {
      idle.announce(0, false);
      Fences::heavy();
      if (waived.size() > 0 && idle.cancel(0, false)) continue;
      idle.wait(0, false);
    }
  }
  void waive() {
    waived.push(&task);
    detail::fence_before_look<Fences>();
  }
};

template <class Fences>
struct waived_while_asleep : rl::test_suite<waived_while_asleep<Fences>, 2> {
  waived_task<Fences> one;

  void thread(unsigned self) {
    if (self == 0) return one.take();
    one.waive();
    if (one.idle.is_parked(0)) one.idle.wake(0);
  }
  void after() { RL_ASSERT(one.idle.sleepers() == 0); }
};

// Who waives and wakes nobody, and a mutation.
enum class unwoken { has_it_seen_to, believes_it_awake };

// Somebody takes the successor's place and stays until somebody sees to what waits there.
template <unwoken Who>
struct waived_to_a_lent_place : rl::test_suite<waived_to_a_lent_place<Who>, 3> {
  waived_task<model_fences> one;
  model_atomic<int> is_seen_to{0};

  void waive() {
    one.waive();
    const bool is_parked = one.idle.is_parked(0);
    const bool is_woken = is_parked && one.idle.wake(0);
    if (Who == unwoken::has_it_seen_to ? !is_woken : !is_parked) is_seen_to.store(1);
  }
  void visit() {
    if (one.idle.lease() != 0) return;
    while (is_seen_to.load() == 0) rl::yield(1, RL_INFO);
    one.idle.hand_back(0);
  }
  void thread(unsigned self) { self == 0 ? one.take() : self == 1 ? waive() : visit(); }
  void after() { RL_ASSERT(one.idle.sleepers() == 0); }
};

}  // namespace strata::model
