// SPDX-License-Identifier: Apache-2.0
// An owner that pushes, and workers that search, force and sleep: the deque and the idle set
// together. The steps are those of scheduler::find_work(), pass_on(), sleep(), work_appeared() and
// look_for_sleepers(), and have to follow them.
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
  request_before_sleep,    // who is about to sleep does not ask
  reminder,                // the owner does not remember that others sleep on
  succession,              // who leaves off looking for work does not wake the next
  succession_of_the_busy,  // nor does who finds something to do in its place
  fence_of_succession      // it looks before others can know that they can no longer rely on it
};

enum class beginning {
  at_once,
  all_asleep,  // all sleep and have asked for it when the owner begins
  delivery     // and then the first worker gets something that only its own place can do
};

template <int Workers, task_length Length, class Fences = model_fences,
          omitted Omitted = omitted::nothing, beginning Beginning = beginning::at_once>
struct sleeping_workers
    : rl::test_suite<sleeping_workers<Workers, Length, Fences, Omitted, Beginning>,
                     1 + Workers + (Beginning == beginning::delivery ? 1 : 0)> {
  static constexpr auto seq_cst = std::memory_order_seq_cst;
  static constexpr int items_pushed = Beginning == beginning::delivery ? Workers - 1 : Workers;

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
    const detail::push_outcome outcome = deque.tend();
    if (outcome == detail::push_outcome::shared) work_appeared();
    if (outcome == detail::push_outcome::reminded) look_for_sleepers();
  }
  void work_appeared() {
    if (idle.anyone_parked() && has_to_wake()) wake_for();
    if (Omitted != omitted::reminder && idle.anyone_parked()) deque.remind();
  }
  void look_for_sleepers() {
    if (!idle.anyone_parked()) return deque.forget_reminder();
    if (has_to_wake() && deque.share()) wake_for();
  }
  bool has_to_wake() { return searchers.load(seq_cst) == 0 && !idle.is_coming(woke); }
  void wake_for() {
    if (const int i = idle.wake_one(); i >= 0) woke = static_cast<unsigned>(i);
  }
  void deliver() {
    while (all_slept.load(seq_cst) == 0) rl::yield(1, RL_INFO);
    delivered.store(1, seq_cst);
    idle.wake(0);
  }

  // ---- a worker ----
  item* find_work(unsigned place) {
    bool slept = false;
    item* found = nullptr;
    do {
      found = search_or_sleep(place, slept);
    } while (found == nullptr && slept);
    return found;
  }
  item* search_or_sleep(unsigned place, bool& slept) {
    bool searching = false;
    slept = false;
    item* found = nullptr;
    while (leave.load(std::memory_order_acquire) == 0) {
      if (is_left_for(place)) break;
      const detail::steal_outcome outcome = deque.steal(found);
      if (outcome == detail::steal_outcome::taken) {
        deque.ask_again();
        break;
      }
      const bool raced = outcome == detail::steal_outcome::lost_race;
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
    if (!slept) pass_on(found);
    return found;
  }
  bool is_left_for(unsigned place) { return place == 0 && delivered.load(seq_cst) != 0; }

  void pass_on(const item* found) {
    if (Omitted == omitted::succession) return;
    if (Omitted == omitted::succession_of_the_busy && found == nullptr) return;
    if (!idle.anyone_parked() || searchers.load(seq_cst) != 0) return;
    if (Omitted != omitted::fence_of_succession) Fences::full();
    if (deque.maybe_work()) idle.wake_one();
  }

  void sleep(unsigned place) {
    if (Omitted != omitted::request_before_sleep) deque.ask();
    idle.announce(place, false);
    if (Omitted != omitted::request_before_sleep) deque.ask();
    Fences::heavy();
    const bool stay = deque.maybe_work() || is_left_for(place) || leave.load(seq_cst) != 0;
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
      if (Beginning != beginning::at_once) {
        for (unsigned place = 0; place < Workers; ++place) {
          while (!idle.is_parked(place)) rl::yield(1, RL_INFO);
        }
        all_slept.store(1, seq_cst);
      }
      for (item& i : items) push(&i);
      return;
    }
    if (self > Workers) return deliver();
    if (Beginning != beginning::at_once) {
      deque.ask();
      idle.announce(self, false);
      idle.wait(self, false);
    }
    while (leave.load(std::memory_order_acquire) == 0) {
      item* found = find_work(self);
      if (found == nullptr && is_left_for(self)) {
        delivered.store(0, seq_cst);
        has_taken();
      } else if (found != nullptr) {
        run(found);
        // Or nobody would do what is delivered.
        if (Beginning == beginning::delivery && self == 0) continue;
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
