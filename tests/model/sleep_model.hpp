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

// What is left out, for mutations.
enum class omitted {
  nothing,
  request_before_sleep,   // who is about to sleep does not ask
  request_of_owner,       // the owner does not share the next push as well while others sleep
  succession,             // who has found something does not wake the next
  succession_of_the_busy  // nor does who has been woken and finds something to do in its place
};

// Whether the first worker, once all have fallen asleep, gets something that only its own place can
// do, and is woken for it.
enum class delivery { none, to_the_first };

template <int Workers, task_length Length, class Fences = model_fences,
          omitted Omitted = omitted::nothing, delivery Delivery = delivery::none>
struct sleeping_workers
    : rl::test_suite<sleeping_workers<Workers, Length, Fences, Omitted, Delivery>,
                     1 + Workers + (Delivery == delivery::none ? 0 : 1)> {
  static constexpr auto seq_cst = std::memory_order_seq_cst;
  static constexpr int items_pushed = Delivery == delivery::none ? Workers : Workers - 1;

  struct item {
    rl::var<int> content{0};
    rl::var<int> takers{0};
  };

  detail::idle_set<futex_atomic, model_futex> idle{Workers};
  model_atomic<std::uint32_t> searchers{0};
  model_atomic<int> leave{0};
  model_atomic<int> taken{0};
  model_atomic<int> all_slept{0};
  model_atomic<int> delivered{0};
  unsigned woke = 0;  // by the owner
  detail::split_deque<item, model_atomic, Fences, 4> deque;
  item items[items_pushed];

  // ---- the owner ----
  void push(item* i) {
    i->content(RL_INFO) = 1;
    if (!deque.push(deque.next(), i)) return;
    if (deque.tend() == detail::push_outcome::shared) work_appeared();
  }
  void work_appeared() {
    if (idle.anyone_parked() && searchers.load(seq_cst) == 0 && !idle.is_coming(woke)) {
      if (const int i = idle.wake_one(); i >= 0) woke = static_cast<unsigned>(i);
    }
    if (Omitted != omitted::request_of_owner && idle.anyone_parked()) deque.ask_self();
  }
  void deliver() {
    while (all_slept.load(seq_cst) == 0) rl::yield(1, RL_INFO);
    delivered.store(1, seq_cst);
    idle.wake(0);
  }

  // ---- a worker ----
  item* find_work(unsigned place) {
    bool woken = false;
    item* found = nullptr;
    do {
      found = search_or_sleep(place, woken);
    } while (found == nullptr && woken);
    return found;
  }
  item* search_or_sleep(unsigned place, bool& woken) {
    bool searching = false;
    bool slept = false;
    item* found = nullptr;
    while (leave.load(std::memory_order_acquire) == 0) {
      if (is_left_for(place)) break;
      const detail::steal_outcome outcome = deque.steal(found);
      if (outcome == detail::steal_outcome::taken) {
        deque.ask_again();
        break;
      }
      const bool raced = outcome == detail::steal_outcome::lost_race;
      woken = woken && raced;
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
      if (raced) continue;
      if (searching) {
        searchers.fetch_sub(1, seq_cst);
        searching = false;
      }
      sleep(place);
      slept = true;
      break;
    }
    if (searching) searchers.fetch_sub(1, seq_cst);
    if (found != nullptr || searching || woken) pass_on(woken);
    woken = slept;
    return found;
  }
  bool is_left_for(unsigned place) { return place == 0 && delivered.load(seq_cst) != 0; }

  void pass_on(bool woken) {
    if (Omitted == omitted::succession) return;
    if (Omitted == omitted::succession_of_the_busy && woken) return;
    if (idle.anyone_parked() && searchers.load(seq_cst) == 0 && work_is_visible()) idle.wake_one();
  }
  bool work_is_visible() { return deque.has_shared() || deque.maybe_work(); }

  void sleep(unsigned place) {
    if (Omitted != omitted::request_before_sleep) deque.ask();
    idle.announce(place, false);
    if (Omitted != omitted::request_before_sleep) deque.ask();
    Fences::heavy();
    const bool stay = work_is_visible() || is_left_for(place) || leave.load(seq_cst) != 0;
    if (!stay || !idle.cancel(place, false)) idle.wait(place, false);
  }

  void run(item* found) {
    RL_ASSERT(found->content(RL_INFO) == 1);
    RL_ASSERT(found->takers(RL_INFO) == 0);
    found->takers(RL_INFO) = 1;
    has_taken();
  }
  void has_taken() {
    if (taken.fetch_add(1, seq_cst) + 1 == Workers) {
      leave.store(1, seq_cst);
      for (unsigned place = 0; place < Workers; ++place) idle.wake(place);
    }
  }

  void thread(unsigned self) {
    if (self == Workers) {
      if (Delivery == delivery::to_the_first) {
        while (idle.sleepers() != Workers) rl::yield(1, RL_INFO);
        all_slept.store(1, seq_cst);
      }
      for (item& i : items) push(&i);
      return;
    }
    if (self > Workers) return deliver();
    while (leave.load(std::memory_order_acquire) == 0) {
      item* found = find_work(self);
      if (found == nullptr && is_left_for(self)) {
        delivered.store(0, seq_cst);
        has_taken();
      } else if (found != nullptr) {
        run(found);
        // Or nobody would do what is delivered.
        if (Delivery == delivery::to_the_first && self == 0) continue;
      } else {
        continue;
      }
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
