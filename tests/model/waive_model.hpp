// SPDX-License-Identifier: Apache-2.0
// One waives a task to its successor, which falls asleep meanwhile. The steps are those of
// scheduler::try_waive() and sleep().
#pragma once
#include "explore.hpp"
#include "model_fences.hpp"
#include "model_futex.hpp"
//
#include "sync/fence_before_look.hpp"
#include "sync/idle_set.hpp"
#include "sync/spsc_queue.hpp"

namespace strata::model {

template <class Fences>
struct waived_while_asleep : rl::test_suite<waived_while_asleep<Fences>, 2> {
  // Its announcement is a fence: where membarrier is refused, heavy() is one of the sleeper's own.
  detail::idle_set<fenced_futex_atomic, model_futex> idle{1};
  detail::spsc_queue<int, model_atomic> waived;
  int task = 0;

  void successor() {
    while (waived.pop() == nullptr) {
      idle.announce(0, false);
      Fences::heavy();
      if (waived.size() > 0 && idle.cancel(0, false)) continue;
      idle.wait(0, false);
    }
  }
  void thread(unsigned self) {
    if (self == 0) return successor();
    waived.push(&task);
    detail::fence_before_look<Fences>();
    if (idle.is_parked(0)) idle.wake(0);
  }
  void after() { RL_ASSERT(idle.sleepers() == 0); }
};

}  // namespace strata::model
