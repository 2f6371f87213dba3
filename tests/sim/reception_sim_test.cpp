// SPDX-License-Identifier: Apache-2.0
// How long a message waits until somebody looks, with each reception, while the node's workers
// compute; and that nobody sleeps over one, however the steps of receivers and workers come between
// each other. A thread that slept too long here would sleep for an hour.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/engine/attention.hpp"
#include "cluster/engine/receiver_turn.hpp"
#include "sim/simulated_reception.hpp"
#include "support.hpp"
#include "tests/common/sampled.hpp"

namespace strata::test {
namespace {

using cluster::attention;
using cluster::reception;
using sim::simulated_reception;

constexpr std::int64_t node_us = 1'000, node_ms = 1'000'000, node_s = 1'000'000'000;
constexpr std::array all_receptions{reception::blocking, reception::polling, reception::watchdog,
                                    reception::adaptive};

const char* name_of_reception(reception how) {
  switch (how) {
    case reception::blocking:
      return "blocking";
    case reception::polling:
      return "polling";
    case reception::watchdog:
      return "watchdog";
    case reception::adaptive:
      break;
  }
  return "adaptive";
}

// Threads that wake, wait for the inbox, and are late by some steps.
std::int64_t overhead_ns(const simulated_reception::settings& s) {
  return 3 * s.wake_ns + 4 * s.look_ns + 20 * s.step_ns_max;
}
// How long a message may wait at most, while no task takes longer than that.
std::int64_t longest_wait_ns(const simulated_reception::settings& s, std::int64_t task_ns) {
  switch (s.how) {
    case reception::blocking:
      return overhead_ns(s);
    case reception::polling:
      // Who looks after the task may find the inbox locked by another, who has looked already.
      return 2 * task_ns + overhead_ns(s);
    case reception::watchdog:
      // Somebody may have looked just before the message came, in the middle of a period.
      return 2 * s.watchdog_ns + overhead_ns(s);
    case reception::adaptive:
      break;
  }
  return attention::late_ns + attention::watch_max_ns + overhead_ns(s);
}

class receiving_node {
 public:
  receiving_node(const simulated_reception::settings& s, std::uint64_t seed)
      : world({}, seed), node(world, s), how(s) {}

  // A message then, that makes a task of so many ns (0: none).
  void send_at(std::int64_t at_ns, std::int64_t task_ns = 0) {
    ++sent;
    world.at(at_ns, [this, task_ns] { node.arrive(handle(task_ns)); });
  }
  void run_at(std::int64_t at_ns, std::int64_t length_ns) {
    longest_task_ns = std::max(longest_task_ns, length_ns);
    world.at(at_ns, [this, length_ns] { node.run(length_ns); });
  }
  void run_until(std::int64_t at_ns) {
    world.run([] { return false; }, at_ns);
  }
  [[nodiscard]] std::int64_t longest_wait() const {
    return *std::max_element(waits.begin(), waits.end());
  }
  void expect_all_in_time() {
    EXPECT_EQ(handled, sent) << node.unattended() << " messages are slept over";
    if (handled == 0) return;
    EXPECT_LE(longest_wait(), longest_wait_ns(how, longest_task_ns));
  }

  simulated_reception::handler handle(std::int64_t task_ns) {
    return [this, task_ns, came_ns = world.now_ns()] {
      ++handled;
      waits.push_back(world.now_ns() - came_ns);
      if (task_ns != 0) node.run(task_ns);
    };
  }

  sim::world world;
  simulated_reception node;
  const simulated_reception::settings how;
  std::int64_t longest_task_ns = 0;
  std::uint64_t sent = 0, handled = 0;
  std::vector<std::int64_t> waits;
};

// ---- a GET from a node that runs one fiber for a second ----

std::int64_t wait_under_a_long_fiber(reception how, std::uint64_t seed) {
  receiving_node n({.how = how}, seed);
  n.run_at(node_ms, node_s);
  n.send_at(300 * node_ms + static_cast<std::int64_t>(n.world.random.below(node_ms)));
  n.run_until(2 * node_s);
  n.expect_all_in_time();
  return n.waits.empty() ? -1 : n.waits.front();
}

TEST(simulated_reception, under_a_long_fiber_is_as_quick_as_who_looks) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    EXPECT_LE(wait_under_a_long_fiber(reception::blocking, seed), 10 * node_us);
    EXPECT_LE(wait_under_a_long_fiber(reception::adaptive, seed), 10 * node_us);
    EXPECT_LE(wait_under_a_long_fiber(reception::watchdog, seed), node_ms + 20 * node_us);
    EXPECT_GE(wait_under_a_long_fiber(reception::polling, seed), 690 * node_ms);
  }
}

// Where the receiver has been called away, since the node was at work before: nobody looks until
// the fiber ends, or the period is over.
TEST(simulated_reception, of_a_node_at_work_waits_for_its_fiber_its_watchdog_or_nobody) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    std::vector<std::int64_t> waited;
    for (const reception how : all_receptions) {
      SCOPED_TRACE(name_of_reception(how));
      receiving_node n({.how = how, .watchdog_ns = 10 * node_ms}, seed);
      // A message, which wakes all, and then the fiber; work before, so that workers are awake.
      for (int i = 0; i < 20; ++i) n.run_at(i * 20 * node_us, 15 * node_us);
      n.send_at(100 * node_us);
      n.run_at(500 * node_us, node_s);
      n.run_until(500 * node_us + 1);
      n.send_at(200 * node_ms + static_cast<std::int64_t>(n.world.random.below(node_ms)));
      n.run_until(2 * node_s);
      n.expect_all_in_time();
      waited.push_back(n.waits.back());
    }
    ASSERT_EQ(waited.size(), 4U);
    const auto [blocking, polling, watchdog, adaptive] =
        std::array{waited[0], waited[1], waited[2], waited[3]};
    EXPECT_LE(blocking, 10 * node_us);
    EXPECT_GE(polling, 790 * node_ms);
    EXPECT_LE(watchdog, 20 * node_ms + 10 * node_us);
    EXPECT_LE(adaptive, node_ms + 10 * node_us);
    EXPECT_GT(watchdog, blocking);
  }
}

// ---- short tasks ----

// While messages are many they cost no wakes where workers look, and one each where they do not.
TEST(simulated_reception, of_many_messages_under_short_tasks_wakes_nobody_where_workers_look) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    std::vector<std::uint64_t> wakes, handled_by_workers;
    for (const reception how : all_receptions) {
      receiving_node n({.how = how}, seed);
      constexpr unsigned messages = 2'000;
      for (unsigned i = 0; i < 10'000; ++i) n.run_at(i * 5 * node_us, 5 * node_us);
      for (unsigned i = 0; i < messages; ++i)
        n.send_at(node_us * 20 * (i + 1) + static_cast<std::int64_t>(n.world.random.below(10'000)));
      n.run_until(node_s);
      n.expect_all_in_time();
      wakes.push_back(n.node.wakes());
      handled_by_workers.push_back(n.node.handled_by_workers());
    }
    EXPECT_GT(wakes[0], 1'000U) << "blocking";
    for (const std::size_t other : {1U, 2U, 3U}) {
      EXPECT_LT(wakes[other], 50U) << name_of_reception(all_receptions[other]);
      EXPECT_GT(handled_by_workers[other], 1'900U) << name_of_reception(all_receptions[other]);
    }
  }
}

// ---- conversations ----

// How long a message waits that comes by the other transport of a node whose only worker has a
// thread for 8 ms that finds each answer at once.
std::int64_t wait_beside_a_conversation(const simulated_reception::settings& s,
                                        std::uint64_t seed) {
  receiving_node n(s, seed);
  n.world.at(node_ms, [&] { n.node.converse(8 * node_ms); });
  for (std::int64_t at = 2 * node_ms; at < 8 * node_ms; at += node_us) n.send_at(at);
  n.run_until(4 * node_ms);
  EXPECT_GT(n.node.handled_by_workers(), 1'500U);
  std::int64_t handled_ns = 0;
  const std::int64_t at = n.world.now_ns() + static_cast<std::int64_t>(n.world.random.below(1'000));
  n.world.at(at, [&] { n.node.arrive_from_afar([&] { handled_ns = n.world.now_ns(); }); });
  n.run_until(node_s);
  EXPECT_EQ(n.handled, n.sent);
  EXPECT_GE(handled_ns, at);
  return handled_ns - at;
}

TEST(simulated_reception, by_one_transport_looks_at_the_other_too) {
  using mutation = simulated_reception::mutation;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const reception how : {reception::adaptive, reception::polling, reception::watchdog}) {
      SCOPED_TRACE(name_of_reception(how));
      EXPECT_LE(wait_beside_a_conversation({.how = how}, seed), 20 * node_us);
    }
    for (const reception how : {reception::adaptive, reception::polling}) {
      EXPECT_GE(wait_beside_a_conversation(
                    {.how = how, .left_out = mutation::a_look_nearby_is_enough}, seed),
                4 * node_ms)
          << name_of_reception(how);
    }
  }
}

// How many of 20 messages, for more than 6 ms, wait for longer than a receiver that looks each time
// that a worker is late, while the idle worker that looks for them has lost its core.
std::ptrdiff_t late_without_a_core(const simulated_reception::settings& s, std::uint64_t seed) {
  receiving_node n(s, seed);
  n.run_at(node_ms, 100 * node_us);  // so that it is awake
  for (int i = 0; i < 400; ++i) n.send_at(node_ms + i * 5 * node_us);
  n.run_until(3 * node_ms);
  EXPECT_GT(n.node.handled_by_workers(), 300U);
  n.node.hold_up(0, 10 * node_ms);
  for (int i = 0; i < 20; ++i)
    n.send_at(3 * node_ms + i * 310 * node_us +
              static_cast<std::int64_t>(n.world.random.below(100'000)));
  n.run_until(node_s);
  EXPECT_EQ(n.handled, n.sent);
  EXPECT_LE(n.longest_wait(), longest_wait_ns(s, 0));
  return std::count_if(n.waits.begin(), n.waits.end(), [&](std::int64_t wait) {
    return wait > attention::late_ns + overhead_ns(s);
  });
}

TEST(simulated_reception, goes_on_where_an_idle_worker_has_lost_its_core) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    simulated_reception::settings s{.how = reception::adaptive, .spin_ns = 20 * node_ms};
    // Until the receiver sees that the worker is late.
    EXPECT_LE(late_without_a_core(s, seed), 3);
    s.left_out = simulated_reception::mutation::nobody_looks_for_others;
    EXPECT_GE(late_without_a_core(s, seed), 8);
  }
}

// ---- a node that is kept busy ----

// For how long the receiver sees to nothing else while messages come faster than it looks, for
// 4 ms.
std::int64_t longest_turn_ns(const simulated_reception::settings& s, std::uint64_t seed) {
  receiving_node n(s, seed);
  for (std::int64_t at = node_ms; at < 5 * node_ms; at += 150) n.send_at(at);
  n.run_until(node_s);
  EXPECT_EQ(n.handled, n.sent);
  EXPECT_TRUE(n.node.is_asleep());
  return n.node.longest_turn_ns();
}

// What is due by the clock is late by a turn at most: its neighbour takes nobody for lost that only
// has much to do.
TEST(simulated_reception, that_never_finds_an_end_sees_to_the_rest_too) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const reception how : all_receptions) {
      SCOPED_TRACE(name_of_reception(how));
      simulated_reception::settings s{.how = how};
      EXPECT_LE(longest_turn_ns(s, seed), cluster::receiver_turn::turn_ns + 50 * node_us);
      s.left_out = simulated_reception::mutation::a_turn_has_no_end;
      EXPECT_GE(longest_turn_ns(s, seed), 3 * node_ms);
    }
  }
}

// ---- nothing is slept over ----

std::int64_t some_time(prng& random, std::int64_t most_ns) {
  const std::int64_t most = random.below(2) == 0 ? most_ns : most_ns / 100;
  return 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most)));
}

TEST(simulated_reception, sleeps_over_nothing_whatever_comes_when) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    prng random(seed);
    for (int run = 0; run < sampled(400, 100); ++run) {
      simulated_reception::settings s;
      s.how = all_receptions[random.below(all_receptions.size())];
      s.workers = 1 + static_cast<unsigned>(random.below(3));
      s.spin_ns = random.below(2) == 0 ? 50 * node_us : 0;
      s.step_ns_max = random.below(2) == 0 ? 100 : 3'000;
      SCOPED_TRACE(std::string(name_of_reception(s.how)) + ", run " + std::to_string(run));
      receiving_node n(s, random.next());
      std::int64_t at = 0;
      const bool is_quick = random.below(2) == 0;
      for (int i = 0; i < 60; ++i) {
        at += some_time(random, is_quick ? 20 * node_us : 3 * node_ms);
        if (random.below(3) == 0) {
          n.run_at(at, some_time(random, 2 * node_ms));
        } else {
          const std::int64_t task_ns = random.below(2) == 0 ? some_time(random, 500 * node_us) : 0;
          n.longest_task_ns = std::max(n.longest_task_ns, task_ns);
          n.send_at(at, task_ns);
        }
      }
      n.run_until(at + node_s);
      n.expect_all_in_time();
      EXPECT_TRUE(n.node.is_asleep());
      // And once more, at any time while it falls asleep.
      const std::int64_t again = n.world.now_ns();
      n.run_at(again, 10 * node_us);
      n.send_at(again + static_cast<std::int64_t>(random.below(80'000)));
      n.run_until(again + node_s);
      n.expect_all_in_time();
      if (HasFailure()) return;
    }
  }
}

// ---- mutations ----

// Whoever leaves messages to workers, and is not roused when the last of them sleeps, sleeps over
// them; so it does where nobody looks once more for what has come while workers looked.
TEST(simulated_reception, sleeps_over_messages_where_a_step_is_left_out) {
  using mutation = simulated_reception::mutation;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const mutation left_out : {mutation::nobody_rouses, mutation::no_last_look}) {
      bool was_late = false;
      for (unsigned run = 0; run < 5'000 && !was_late; ++run) {
        const bool rouses = left_out != mutation::nobody_rouses;
        receiving_node n({.how = rouses ? reception::blocking : reception::polling,
                          .step_ns_max = 3'000,
                          .left_out = left_out},
                         seed * 10'000 + run);
        // Work, so that the receiver is called away; then a message at any time.
        for (int i = 0; i < 20; ++i) n.run_at(i * 20 * node_us, 15 * node_us);
        n.send_at(100 * node_us);
        n.send_at(390 * node_us + static_cast<std::int64_t>(n.world.random.below(100'000)));
        n.run_until(node_s);
        was_late =
            n.handled < n.sent || n.longest_wait() > longest_wait_ns(n.how, n.longest_task_ns);
      }
      EXPECT_TRUE(was_late) << static_cast<int>(left_out);
    }
  }
}

}  // namespace
}  // namespace strata::test
