// SPDX-License-Identifier: Apache-2.0
// Two handlers leave signals to the one who takes them, more than there is room for.
#pragma once
#include "explore.hpp"
#include "mutations.hpp"
//
#include <algorithm>
#include <atomic>
#include <cstddef>

#include "pthread/left_signals.hpp"

namespace strata::model {

// Who says it, and his how many-th it is. Read while it is written, or by halves, it is a race.
struct watched_info {
  rl::var<unsigned> producer{0};
  rl::var<unsigned> turn{0};

  watched_info() = default;
  watched_info(unsigned by, unsigned which) : producer(by), turn(which) {}
  watched_info& operator=(const watched_info& other) {
    producer(RL_INFO) = static_cast<unsigned>(other.producer(RL_INFO));
    turn(RL_INFO) = static_cast<unsigned>(other.turn(RL_INFO));
    return *this;
  }
};

// Threads 0 and 1 put, thread 2 takes. What is written down here stands beside the schedule: only
// the code under test orders anything.
inline constexpr unsigned those_who_put = 2;

// Each that was put is taken once, whole, and in its producer's order.
template <unsigned Each, template <class> class Atomic = model_atomic>
struct left_in_order : rl::test_suite<left_in_order<Each, Atomic>, those_who_put + 1> {
  static constexpr unsigned room = 2;
  inline static struct { unsigned refused = 0, gone_round = 0; } reached;

  detail::posix::queued_signals<watched_info, Atomic, room> signals;
  bool kept[those_who_put][Each] = {};
  unsigned next[those_who_put] = {};
  unsigned taken = 0;

  bool take_one() {
    watched_info info;
    if (!signals.take(info)) return false;
    const unsigned by = info.producer(RL_INFO);
    const unsigned turn = info.turn(RL_INFO);
    RL_ASSERT(by < those_who_put && turn < Each);
    RL_ASSERT(turn >= next[by]);
    for (; next[by] < turn; ++next[by]) RL_ASSERT(!kept[by][next[by]]);
    ++next[by];
    ++taken;
    return true;
  }

  void thread(unsigned self) {
    if (self < those_who_put) {
      for (unsigned i = 0; i < Each; ++i) kept[self][i] = signals.put(watched_info(self, i));
    } else {
      for (unsigned looks = 0; looks < those_who_put * Each; ++looks) take_one();
    }
  }

  void after() {
    while (take_one()) {
    }
    unsigned put = 0;
    for (unsigned p = 0; p < those_who_put; ++p) {
      for (unsigned i = 0; i < Each; ++i) {
        RL_ASSERT(i < next[p] || !kept[p][i]);
        put += kept[p][i];
      }
    }
    RL_ASSERT(put == taken);
    // None is refused where there is room.
    RL_ASSERT(put >= room);
    reached.refused += put < those_who_put * Each;
    reached.gone_round += put > room;
  }
};

// One of a number is there at a time. Each that was put is taken once and whole; and after each,
// also after those that were refused, one of its number is taken by who then sees what its
// producer had done before.
template <unsigned Each, template <class> class Atomic = model_atomic>
struct left_merged : rl::test_suite<left_merged<Each, Atomic>, those_who_put + 1> {
  static constexpr std::size_t numbers = 2;
  inline static struct { unsigned refused = 0, again = 0; } reached;

  detail::posix::merged_signals<watched_info, Atomic, numbers> signals;
  // What a producer had done. Not weakened, and relaxed: it is not ours.
  model_atomic<unsigned> done[those_who_put];
  bool kept[those_who_put][Each] = {};
  unsigned times_taken[those_who_put][Each] = {};
  unsigned seen[numbers][those_who_put] = {};

  // The first has number 0 alone, the second each in turn.
  static std::size_t number_of(unsigned producer, unsigned turn) { return producer * turn % 2; }

  bool take_one() {
    watched_info info;
    if (!signals.take(info)) return false;
    const unsigned by = info.producer(RL_INFO);
    const unsigned turn = info.turn(RL_INFO);
    RL_ASSERT(by < those_who_put && turn < Each);
    ++times_taken[by][turn];
    unsigned(&of_number)[those_who_put] = seen[number_of(by, turn)];
    for (unsigned p = 0; p < those_who_put; ++p)
      of_number[p] = std::max(of_number[p], done[p].load(std::memory_order_relaxed));
    return true;
  }

  void thread(unsigned self) {
    if (self < those_who_put) {
      for (unsigned i = 0; i < Each; ++i) {
        done[self].store(i + 1, std::memory_order_relaxed);
        kept[self][i] = signals.put(number_of(self, i), watched_info(self, i));
      }
    } else {
      for (unsigned looks = 0; looks < those_who_put * Each; ++looks) take_one();
    }
  }

  void after() {
    while (take_one()) {
    }
    unsigned put = 0;
    for (unsigned p = 0; p < those_who_put; ++p) {
      for (unsigned i = 0; i < Each; ++i) {
        RL_ASSERT(times_taken[p][i] == (kept[p][i] ? 1U : 0U));
        RL_ASSERT(seen[number_of(p, i)][p] > i);
        put += kept[p][i];
      }
    }
    reached.refused += put < those_who_put * Each;
    reached.again += put > numbers;
  }
};

}  // namespace strata::model
