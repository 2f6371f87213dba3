// SPDX-License-Identifier: Apache-2.0
// An owner that pushes, and workers that search, force and sleep: the deque and the idle set
// together. The steps are those of scheduler::find_work(), sleep() and work_appeared(), and have to
// follow them.
//
// The owner never takes anything back, because it is deep in something long. So what it pushed is
// found only if nobody sleeps who should find it. Whoever sleeps for ever is a deadlock, which
// Relacy reports.
#pragma once
#include "explore.hpp"
#include "model_fences.hpp"
#include "model_futex.hpp"
//
#include <cstdint>

#include "strata/detail/split_deque.hpp"
#include "sync/idle_set.hpp"

namespace strata::model {

// What a worker does with the task that it has found.
enum class task_length {
  brief,   // it comes back for more
  endless  // so every task needs a worker of its own: all of them have to wake up
};

// When a worker that has found something wakes the next.
enum class succession { until_surely_none_is_left, while_work_is_visible, never };

// Mutation: who is about to sleep does not ask once more.
enum class request { standing, none };

template <int Workers, task_length Length, class Fences = model_fences,
          succession Succession = succession::while_work_is_visible,
          request Request = request::standing>
struct sleeping_workers
    : rl::test_suite<sleeping_workers<Workers, Length, Fences, Succession, Request>, 1 + Workers> {
  static constexpr auto seq_cst = std::memory_order_seq_cst;

  struct item {
    rl::var<int> content{0};
    rl::var<int> takers{0};
  };

  detail::idle_set<futex_atomic, model_futex> idle{Workers};
  model_atomic<std::uint32_t> searchers{0};
  model_atomic<int> leave{0};
  model_atomic<int> taken{0};
  detail::split_deque<item, model_atomic, Fences, 4> deque;
  item items[Workers];

  // ---- the owner ----
  void push(item* i) {
    i->content(RL_INFO) = 1;
    if (!deque.push(deque.next(), i)) return;
    if (deque.tend() == detail::push_outcome::shared) work_appeared();
  }
  void work_appeared() {
    if (searchers.load(seq_cst) == 0 && idle.anyone_parked()) idle.wake_one();
  }

  // ---- a worker ----
  item* find_work(unsigned place) {
    bool searching = false;
    item* found = nullptr;
    while (leave.load(std::memory_order_acquire) == 0) {
      const detail::steal_outcome outcome = deque.steal(found);
      if (outcome == detail::steal_outcome::taken) {
        deque.ask_again();
        break;
      }
      deque.ask();
      bool give_up = searching;
      if (!searching) {
        searching = searchers.fetch_add(1, seq_cst) == 0;
        if (!searching) {
          searchers.fetch_sub(1, seq_cst);
          give_up = true;
        }
      }
      if (!give_up) continue;
      if (deque.maybe_work() && !deque.has_shared() && deque.force()) continue;
      if (outcome == detail::steal_outcome::lost_race) continue;
      if (searching) {
        searchers.fetch_sub(1, seq_cst);
        searching = false;
      }
      sleep(place);
      break;
    }
    if (searching) searchers.fetch_sub(1, seq_cst);
    if (found != nullptr && idle.anyone_parked() && searchers.load(seq_cst) == 0 && more()) {
      idle.wake_one();
    }
    return found;
  }

  bool more() {
    switch (Succession) {
      case succession::until_surely_none_is_left:
        if (deque.maybe_work()) return true;
        Fences::heavy();
        return deque.maybe_work();
      case succession::while_work_is_visible:
        return deque.maybe_work();
      case succession::never:
        return false;
    }
    return false;
  }

  void sleep(unsigned place) {
    if (Request == request::standing) deque.ask();
    idle.announce(place, false);
    if (Request == request::standing) deque.ask();
    Fences::heavy();
    const bool stay = deque.maybe_work() || leave.load(seq_cst) != 0;
    if (!stay || !idle.cancel(place, false)) idle.wait(place, false);
  }

  void run(item* found) {
    RL_ASSERT(found->content(RL_INFO) == 1);
    RL_ASSERT(found->takers(RL_INFO) == 0);
    found->takers(RL_INFO) = 1;
    if (taken.fetch_add(1, seq_cst) + 1 == Workers) {
      leave.store(1, seq_cst);
      for (unsigned place = 0; place < Workers; ++place) idle.wake(place);
    }
  }

  void thread(unsigned self) {
    if (self == Workers) {
      for (item& i : items) push(&i);
      return;
    }
    while (leave.load(std::memory_order_acquire) == 0) {
      item* found = find_work(self);
      if (found == nullptr) continue;
      run(found);
      if (Length == task_length::endless) return;
    }
  }
  void after() {
    for (item& i : items) RL_ASSERT(i.takers(RL_INFO) == 1);
    RL_ASSERT(idle.sleepers() == 0);
    RL_ASSERT(searchers.load(seq_cst) == 0);
  }
};

}  // namespace strata::model
