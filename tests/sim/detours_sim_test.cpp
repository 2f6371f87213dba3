// SPDX-License-Identifier: Apache-2.0
// Connections that end, or fall silent, while everybody talks: what was sent arrives once and in
// order, and only who is reached by nobody is lost.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "talking_job.hpp"

namespace strata::test {
namespace {

// Everybody in a circle, and some across.
cables circle_of(node_id nodes, prng& random) {
  cables c;
  const auto any_latency = [&] { return static_cast<std::int64_t>(5'000 + random.below(100'000)); };
  for (node_id n = 0; n < nodes; ++n)
    c.lay(n, static_cast<node_id>((n + 1) % nodes), any_latency());
  for (unsigned i = 0; i < nodes; ++i) {
    const auto a = static_cast<node_id>(random.below(nodes));
    const auto b = static_cast<node_id>(random.below(nodes));
    if (a != b) c.lay(a, b, any_latency());
  }
  return c;
}

TEST(simulated_detours, what_was_on_the_way_comes_once_and_in_order) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    talking_job t(triangle(), 3, 3, seed, misbehaving);
    t.world.at(t.world.now_ns() + 5'000'000, [&] { t.job->tear(1, 2); });
    t.end();
    EXPECT_EQ(t.job->node(1).way_to(2).hops, 2);
    EXPECT_EQ(t.job->node(2).way_to(1).hops, 2);
  }
}

TEST(simulated_detours, several_end_at_once_as_long_as_some_way_is_left) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    prng random(seed);
    const auto nodes = static_cast<node_id>(3 + random.below(6));
    const cables all = circle_of(nodes, random);
    talking_job t(all, nodes, nodes, seed, misbehaving);
    std::set<node_id> everybody;
    for (node_id n = 0; n < nodes; ++n) everybody.insert(n);
    std::set<std::pair<node_id, node_id>> torn;
    for (unsigned i = 0; i < 2U * nodes; ++i) {
      const auto a = static_cast<node_id>(random.below(nodes));
      const auto b = static_cast<node_id>(random.below(nodes));
      if (a == b || !all(a, b) || torn.contains(std::minmax(a, b))) continue;
      torn.insert(std::minmax(a, b));
      const auto is_left = [&](node_id x, node_id y) { return !torn.contains(std::minmax(x, y)); };
      if (!t.is_joined(everybody, everybody, is_left)) {
        torn.erase(std::minmax(a, b));
        continue;
      }
      t.world.at(t.world.now_ns() + static_cast<std::int64_t>(random.below(10'000'000)),
                 [&t, a, b] { t.job->tear(a, b); });
    }
    t.end();
    for (node_id n = 0; n < nodes; ++n)
      EXPECT_EQ(t.job->node(n).losses(), (std::map<node_id, std::string>()));
    for (const auto& [a, b] : torn) EXPECT_GT(t.job->node(a).way_to(b).hops, 1);
  }
}

// All of its connections end at once, as those of a process do.
TEST(simulated_detours, who_is_reached_by_nobody_is_lost_at_once) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    prng random(seed);
    const node_id nodes = 6;
    const cables all = circle_of(nodes, random);
    talking_job t(all, nodes, nodes, seed, misbehaving);
    const auto gone = static_cast<node_id>(1 + random.below(nodes - 1));
    t.until_ns = t.world.now_ns();
    const std::int64_t ends = t.world.now_ns() + 1'000'000;
    t.world.at(ends, [&] {
      t.job->node(gone).crash();
      for (node_id n = 0; n < nodes; ++n) {
        if (n != gone && all(gone, n)) t.job->tear(gone, n);
      }
    });
    EXPECT_TRUE(
        t.world.run([&] { return t.job->node(0).losses().contains(gone); }, ends + 50'000'000));
    EXPECT_EQ(t.job->node(0).losses().size(), 1U);
    EXPECT_EQ(t.job->node(0).losses().at(gone), "closed the connection");
    EXPECT_EQ(t.job->failure(), nullptr);
  }
}

// Nobody hears of an end.
TEST(simulated_detours, a_silent_network_is_left_if_there_is_another) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    // What is lost is repeated in a fraction of that time, and lost again now and then.
    talking_job t(triangle(), 3, 3, seed, misbehaving, 0, 2'000'000'000);
    const std::int64_t began = t.world.now_ns();
    t.until_ns = began + 3'000'000'000;
    t.pause_ns = 10'000'000;
    t.world.at(began + 500'000'000, [&] { t.job->silence(1, 2); });
    t.end();
    EXPECT_EQ(t.job->node(1).way_to(2).hops, 2);
    for (node_id n = 0; n < 3; ++n) EXPECT_TRUE(t.job->node(n).losses().empty());
  }
}

// Of two that nodes share; they end one after the other, or at the same time, one of them in
// silence: two after each other would be noticed when the node behind them is lost already.
TEST(simulated_detours, spare_connections_take_the_place_of_others) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    prng random(seed);
    const auto nodes = static_cast<node_id>(3 + random.below(4));
    const cables all = circle_of(nodes, random);
    talking_job t(all, nodes, nodes, seed, misbehaving, 0, 2'000'000'000, true);
    const std::int64_t began = t.world.now_ns();
    t.until_ns = began + 6'000'000'000;
    t.pause_ns = 10'000'000;
    // In the circle two nodes lose both at most.
    const auto lonely = static_cast<node_id>(random.below(nodes));
    for (node_id n = 0; n < nodes; ++n) {
      const auto next = static_cast<node_id>((n + 1) % nodes);
      const auto first = static_cast<unsigned>(random.below(2));
      const auto when = began + static_cast<std::int64_t>(random.below(1'000'000'000));
      const bool in_silence = n == lonely && random.below(2) == 0;
      t.world.at(when, [&t, n, next, first, in_silence] {
        in_silence ? t.job->silence(n, next, first) : t.job->tear(n, next, first);
      });
      const auto pause = static_cast<std::int64_t>(random.below(2) * random.below(300'000));
      if (n == lonely)
        t.world.at(when + pause, [&t, n, next, first] { t.job->tear(n, next, 1 - first); });
    }
    t.end();
    for (node_id n = 0; n < nodes; ++n)
      EXPECT_EQ(t.job->node(n).losses(), (std::map<node_id, std::string>()));
  }
}

}  // namespace
}  // namespace strata::test
