// SPDX-License-Identifier: Apache-2.0
// One owner and one or two thieves on a deque of four slots.
//
// What owner and thieves do is written as a word, one letter for each step; see below.
#pragma once
#include "explore.hpp"
#include "model_fences.hpp"
//
#include <algorithm>
#include <cstddef>
#include <vector>

#include "strata/detail/split_deque.hpp"

namespace strata::model {

template <std::size_t N>
struct steps {
  char letters[N];
  constexpr steps(const char (&word)[N]) { std::copy(word, word + N, letters); }
};

// Owner: p push, o pop, n take the newest back by its number, t the same without the number,
//        w ask itself later, h share if asked and there is something, * one of p o n by chance.
// Thief: s steal, a ask, f force, l look as a worker does: steal; if there is nothing, ask, force
//        and steal again; * one of s a f by chance.
enum class at_the_end {
  drain,   // the owner takes what is left, while the thieves may still be at work
  abandon  // it is deep in something long
};

template <steps Owner, steps Thief, int Thieves = 1, class Fences = model_fences,
          template <class> class Atomic = model_atomic, at_the_end End = at_the_end::drain>
struct deque_model
    : rl::test_suite<deque_model<Owner, Thief, Thieves, Fences, Atomic, End>, 1 + Thieves> {
  struct item {
    rl::var<int> content{0};
    rl::var<int> takers{0};
  };
  using deque = detail::split_deque<item, Atomic, Fences, 4>;
  static constexpr int items_max = 12;

  // How often, in all schedules together.
  struct counts {
    unsigned taken_back = 0, shared = 0, forced = 0, stolen = 0, lost_by_thief = 0,
             lost_by_owner = 0;
  };
  inline static counts reached;

  deque under_test;
  item items[items_max];

  // The owner's.
  int pushed = 0;
  item* left[items_max] = {};  // pushed and not seen to be gone, oldest first
  typename deque::index number_of[items_max] = {};
  int left_count = 0;

  void take(item* i) {
    RL_ASSERT(i != nullptr);
    RL_ASSERT(i->content(RL_INFO) == content_of(i));
    RL_ASSERT(i->takers(RL_INFO) == 0);
    i->takers(RL_INFO) = 1;
  }
  int content_of(item* i) { return 100 + static_cast<int>(i - items); }

  void push() {
    if (pushed == items_max) return;
    item* i = &items[pushed++];
    i->content(RL_INFO) = content_of(i);
    const auto number = under_test.next();
    left[left_count] = i;
    number_of[left_count++] = number;
    if (!under_test.push(number, i)) return;
    switch (under_test.tend()) {
      case detail::push_outcome::full:
        ++reached.taken_back;
        --left_count;
        return take(i);
      case detail::push_outcome::shared:
        ++reached.shared;
        if (pushed % 2 == 0) under_test.remind();
        return;
      case detail::push_outcome::reminded:
        // By turns, as with a sleeper to be woken and without.
        if (pushed % 2 == 0) return under_test.forget_reminder();
        reached.shared += under_test.share();
        return;
      case detail::push_outcome::done:
        return;
    }
  }

  // Thieves take from the other end, so what the owner gets is its newest; or everything is gone.
  void pop() { got(under_test.pop()); }
  void take_back(bool by_number) {
    if (left_count == 0) return;
    item* newest = left[left_count - 1];
    const bool ours = by_number ? under_test.try_pop(number_of[left_count - 1], newest)
                                : under_test.try_pop(newest);
    got(ours ? newest : nullptr);
  }
  void got(item* i) {
    if (i == nullptr) {
      reached.lost_by_owner += left_count > 0;
      left_count = 0;
      return;
    }
    RL_ASSERT(left_count > 0);
    RL_ASSERT(i == left[--left_count]);
    take(i);
  }

  void own(char step) {
    switch (step) {
      case 'p':
        return push();
      case 'o':
        return pop();
      case 'n':
        return take_back(true);
      case 't':
        return take_back(false);
      case 'w':
        return under_test.ask_later(1);
      case 'h':
        if (under_test.owes()) reached.shared += under_test.tend() == detail::push_outcome::shared;
        return;
      case '*':
        return own("ppon"[rl::rand(4)]);
    }
  }

  // `last`: number of the thief's last item. A thief's own loot is in the order of pushing.
  bool steal(int& last) {
    item* found = nullptr;
    switch (under_test.steal(found)) {
      case detail::steal_outcome::taken:
        take(found);
        RL_ASSERT(static_cast<int>(found - items) > last);
        last = static_cast<int>(found - items);
        ++reached.stolen;
        return true;
      case detail::steal_outcome::lost_race:
        ++reached.lost_by_thief;
        return false;
      case detail::steal_outcome::empty:
        return false;
    }
    return false;
  }

  void force() { reached.forced += under_test.force(); }

  void thieve(char step, int& last) {
    switch (step) {
      case 's':
        steal(last);
        return;
      case 'a':
        return under_test.ask();
      case 'f':
        return force();
      case 'l':
        if (steal(last)) return under_test.ask_again();
        under_test.ask();
        if (under_test.maybe_work() && !under_test.has_shared()) force();
        steal(last);
        return;
      case '*':
        return thieve("ssaf"[rl::rand(4)], last);
    }
  }

  void thread(unsigned index) {
    if (index == 0) {
      for (const char step : Owner.letters) own(step);
      while (End == at_the_end::drain && left_count > 0) pop();
    } else {
      int last = -1;
      for (const char step : Thief.letters) thieve(step, last);
    }
  }

  void after() {
    while (left_count > 0) pop();
    RL_ASSERT(under_test.pop() == nullptr);
    RL_ASSERT(!under_test.maybe_work());
    RL_ASSERT(!under_test.has_shared());
    for (int i = 0; i < pushed; ++i) RL_ASSERT(items[i].takers(RL_INFO) == 1);
    // And it works still.
    for (int i = 0; i < 2; ++i) push();
    RL_ASSERT(left_count == 2);
    for (int i = 0; i < 2; ++i) pop();
    RL_ASSERT(left_count == 0);
  }
};

}  // namespace strata::model
