// SPDX-License-Identifier: Apache-2.0
// Who looks for messages on one node, under a simulated clock: its receiver and its workers as
// threads that take their steps one after the other, each some random time later, so that they come
// between each other's steps in any order that a seed makes. What they decide is
// cluster/engine/reception_rules.hpp and receiver_turn.hpp, as in the engine; the order of their
// steps is that of cluster/engine/reception.cpp and sched/search.cpp, which it has to follow. That
// nobody sleeps over a message within a transport is proved elsewhere
// (tests/model/sleepers_test.cpp); here a transport keeps what net/transport.hpp promises.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "cluster/engine/receiver_turn.hpp"
#include "cluster/engine/reception_rules.hpp"
#include "sim/world.hpp"

namespace strata::sim {

class simulated_reception {
 public:
  enum class mutation {
    none,
    nobody_rouses,
    no_last_look,
    nobody_looks_for_others,  // who is held up
    a_look_nearby_is_enough,
    a_turn_has_no_end  // while messages come
  };
  struct settings {
    cluster::reception how = cluster::reception::blocking;
    unsigned workers = 1;
    std::int64_t watchdog_ns = 1'000'000;
    // For so long a receiver sleeps at most: what it would notice only then has been slept over.
    std::int64_t beat_ns = 3'600'000'000'000;
    std::int64_t spin_ns = 50'000;       // a worker looks before it sleeps
    std::int64_t look_every_ns = 1'000;  // adaptive, between tasks, at least
    std::int64_t wake_ns = 5'000;        // until a thread that is woken runs
    std::int64_t look_ns = 200;          // for all that is there
    std::int64_t step_ns_max = 100;      // each other step
    mutation left_out = mutation::none;  // for tests of tests
  };
  simulated_reception(world& w, const settings& s);
  simulated_reception(const simulated_reception&) = delete;
  simulated_reception& operator=(const simulated_reception&) = delete;

  // A task of that length, by whichever worker comes first.
  void run(std::int64_t length_ns);
  // A task of that length that waits for messages by the nearest of two transports and looks there
  // itself, without an end: a thread whose answers come at once.
  void converse(std::int64_t length_ns);
  // The idle worker takes no step for so long: another program has its core.
  void hold_up(unsigned i, std::int64_t length_ns);
  // A message comes; it has been handled: `handled`, which may call run(), is called.
  using handler = std::function<void()>;
  void arrive(handler handled);
  // The same by the farther transport, where all look but who converses.
  void arrive_from_afar(handler handled);

  // Nothing is left to do: all threads sleep.
  [[nodiscard]] bool is_asleep() const;
  // Messages that have come and that nobody has looked at.
  [[nodiscard]] std::size_t unattended() const noexcept { return inbox_.size() + afar_.size(); }
  [[nodiscard]] std::uint64_t handled_by_workers() const noexcept { return by_workers_; }
  // How often a thread was woken where messages come in.
  [[nodiscard]] std::uint64_t wakes() const noexcept { return wakes_; }
  // The longest time for which the receiver, awake, has seen to nothing but messages.
  [[nodiscard]] std::int64_t longest_turn_ns() const noexcept { return longest_turn_ns_; }

 private:
  struct worker {
    bool sleeps = false;
    bool is_called = false;  // somebody has seen that it sleeps, and wakes it
    bool polls = false;      // is counted in attendants_
    std::int64_t idle_since = 0;
    std::int64_t held_up_until = 0;
  };
  struct task {
    std::int64_t length_ns;
    bool converses = false;
  };
  enum class place { awake, at_transport, elsewhere };

  void after(std::int64_t ns, std::function<void()> step);
  void soon(std::function<void()> step);
  // As whoever has the inbox, which others wait for, or pass by.
  enum class sight { passed_by, nothing, found };
  using looker = std::function<void(sight)>;
  void look(bool patiently, std::uint64_t& count, looker then);
  void look_now(std::uint64_t& count, looker then);
  [[nodiscard]] std::deque<handler> all_that_came();

  void work(unsigned i);
  void run_task(unsigned i, task t);
  void converse_until(unsigned i, std::int64_t end_ns);
  void end_task(unsigned i);
  void add(task t);
  void search(unsigned i);
  void fall_asleep(unsigned i);
  void announce(unsigned i);
  void wake_somebody();

  void receive();
  void begin_turn();
  void take_in();
  void end_turn(cluster::receiver_turn::outcome how);
  void sleep_at_transport();
  void sleep_elsewhere(std::uint32_t epoch, std::int64_t ns);
  void wake_receiver_at(place p);
  void rouse();
  [[nodiscard]] bool all_sleep() const;

  world& in_;
  const settings how_;
  cluster::reception_rules rules_;
  std::vector<worker> workers_;
  std::deque<task> tasks_;
  std::deque<handler> inbox_, afar_;
  std::int64_t inbox_free_at_ = 0;
  unsigned attendants_ = 0;  // idle workers that poll
  place receiver_ = place::awake;
  std::uint64_t receiver_sleep_ = 0;  // which of its sleeps this is
  std::uint32_t epoch_ = 0;           // of rousing
  cluster::receiver_turn turn_{0};
  std::int64_t turn_began_at_ = 0, longest_turn_ns_ = 0;
  std::uint64_t by_receiver_ = 0, by_workers_ = 0, wakes_ = 0;
};

}  // namespace strata::sim
