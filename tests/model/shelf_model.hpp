// SPDX-License-Identifier: Apache-2.0
// An owner that puts things on its shelf and takes some back, and neighbours that take from it.
// What was put there has one taker, who reads what was written, whoever is interrupted where.
#pragma once
#include "explore.hpp"
#include "mutations.hpp"
//
#include <array>
#include <atomic>
#include <cstring>

#include "net/shm/shelf.hpp"

namespace strata::model {

// Two places, so that they are soon written again; two words in each, so that it can be seen when
// one of them is new and the other old.
template <template <class> class Atomic>
using small_shelf = net::shm::shelf<Atomic, 2, 2>;

struct thing {
  std::uint64_t number, same;
};

template <template <class> class Atomic = model_atomic>
struct counted_shelf {
  static constexpr unsigned things = 4;
  small_shelf<Atomic> shelf;
  Atomic<int> taken[things];
  Atomic<unsigned> gone{0};

  bool put(std::uint64_t number) {
    const thing t{number, number};
    return shelf.put(std::as_bytes(std::span(&t, 1)), 2) != small_shelf<Atomic>::places;
  }
  bool own(const net::taken_thing& t, const std::byte* bytes) {
    RL_ASSERT(t.how != net::take_outcome::malformed);
    if (t.how == net::take_outcome::empty) return false;
    RL_ASSERT(t.bytes == sizeof(thing));
    thing got{};
    std::memcpy(&got, bytes, sizeof(got));
    RL_ASSERT(got.number == got.same);
    RL_ASSERT(got.number < things);
    RL_ASSERT(t.place == got.number % 2);
    RL_ASSERT(taken[got.number].exchange(1, std::memory_order_relaxed) == 0);
    gone.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  bool take() {
    std::array<std::byte, small_shelf<Atomic>::bytes_max> bytes;
    return own(shelf.take(bytes.data()), bytes.data());
  }
  bool take_back() {
    std::array<std::byte, small_shelf<Atomic>::bytes_max> bytes;
    return own(shelf.take_back(bytes.data()), bytes.data());
  }
};

template <unsigned Takers, template <class> class Atomic = model_atomic>
struct shelf_owner_and_takers : rl::test_suite<shelf_owner_and_takers<Takers, Atomic>, 1 + Takers> {
  counted_shelf<Atomic> s;
  unsigned put = 0;

  void thread(unsigned self) {
    if (self != 0) {
      s.take();
      s.take();
      return;
    }
    while (put < s.things) {
      if (s.put(put)) {
        ++put;
      } else {
        s.take_back();
      }
    }
    while (s.take_back()) {
    }
  }
  void after() {
    RL_ASSERT(s.shelf.size() == 0);
    RL_ASSERT(s.gone.load(std::memory_order_relaxed) == s.things);
  }
};

// Which comes first where one side says something and then looks what the other has said.
enum class habit { says_then_looks, looks_then_says };

// stealing::feed() and stealing::on_steal(): the owner shelves its last token and sees whether
// somebody waits for one; whoever handles the neighbour's message records that it waits and sees
// whether one is on the shelf. Between them they find the token a way to the neighbour, which has
// looked at the shelf itself before and sleeps now.
template <template <class> class Atomic = model_atomic, habit Owner = habit::says_then_looks>
struct shelf_and_wish : rl::test_suite<shelf_and_wish<Atomic, Owner>, 2> {
  counted_shelf<Atomic> s;
  Atomic<std::uint32_t> wished{0};
  Atomic<unsigned> sent{0};

  void send() {
    if (s.take_back()) sent.fetch_add(1, std::memory_order_relaxed);
  }
  void thread(unsigned self) {
    if (self == 0) {
      const bool early = wished.load(std::memory_order_seq_cst) != 0;
      s.put(0);
      if (Owner == habit::says_then_looks ? wished.load(std::memory_order_seq_cst) != 0 : early)
        send();
    } else {
      wished.fetch_add(1, std::memory_order_seq_cst);
      if (s.shelf.size() != 0) send();
    }
  }
  void after() { RL_ASSERT(sent.load(std::memory_order_relaxed) == 1); }
};

// The owner fills the shelf, and once it is full looks no more whether there is room, until it is
// told; the neighbours empty it. If it has been full one of them tells it, and the shelf counts as
// attended again.
template <template <class> class Atomic = model_atomic>
struct shelf_runs_low : rl::test_suite<shelf_runs_low<Atomic>, 3> {
  counted_shelf<Atomic> s;
  Atomic<unsigned> told{0};

  void take_one() {
    std::array<std::byte, small_shelf<Atomic>::bytes_max> bytes;
    const net::taken_thing t = s.shelf.take(bytes.data());
    if (s.own(t, bytes.data()) && t.tell_owner) told.fetch_add(1, std::memory_order_relaxed);
  }
  void thread(unsigned self) {
    if (self == 0) {
      s.put(0);
      s.put(1);
      return;
    }
    take_one();
    take_one();
  }
  void after() {
    while (s.shelf.size() != 0) take_one();
    RL_ASSERT(told.load(std::memory_order_relaxed) <= 1);
    s.put(2);
    take_one();
    RL_ASSERT(told.load(std::memory_order_relaxed) <= 1);
    // It has not been full again, so nobody is to be told a second time; unless it was set aside
    // by hand.
    s.shelf.set_attended(false);
    s.put(3);
    const unsigned before = told.load(std::memory_order_relaxed);
    take_one();
    RL_ASSERT(told.load(std::memory_order_relaxed) == before + 1);
  }
};

}  // namespace strata::model
