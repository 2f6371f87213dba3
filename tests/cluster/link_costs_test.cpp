// SPDX-License-Identifier: Apache-2.0
// From what was measured to what a network costs, and to the ways that follow.
#include "cluster/ways/link_costs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "cluster/ways/routes.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

using launch::measured_link;
using table = std::vector<std::vector<measured_link>>;

// Each node on a host of its own.
std::vector<std::uint16_t> own_hosts(std::size_t nodes) {
  std::vector<std::uint16_t> all(nodes);
  for (std::size_t n = 0; n < nodes; ++n) all[n] = static_cast<std::uint16_t>(n);
  return all;
}

measured_link to(unsigned other, std::int64_t latency_ns, std::int64_t bytes_per_s = 1'000'000'000,
                 std::uint16_t network = 0) {
  return {static_cast<node_id>(other), network, to_step(latency_ns), to_step(bytes_per_s)};
}

routes ways_of(node_id self, std::size_t nodes, const link_costs& costs) {
  return {self, static_cast<node_id>(nodes),
          [&](node_id a, node_id b) { return costs.between(a, b, 0); }};
}

TEST(link_costs, are_rounded_to_powers_of_the_square_root_of_2) {
  for (const std::int64_t value : {1LL, 2LL, 3LL, 1000LL, 123'456'789LL, 1LL << 40}) {
    const double ratio =
        static_cast<double>(from_step(to_step(value))) / static_cast<double>(value);
    EXPECT_LE(std::abs(std::log2(ratio)), 0.26) << value;
  }
  // What nobody measures, and what nobody can.
  EXPECT_EQ(to_step(0), 0);
  EXPECT_EQ(to_step(-5), 0);
  EXPECT_EQ(to_step(INT64_MAX), measured_link::step_max);
  EXPECT_GT(from_step(0), 0);
}

TEST(link_costs, are_latency_and_the_time_of_a_typical_message) {
  const link_costs costs({{to(1, 1 << 20, 1 << 20)}, {}}, own_hosts(2));
  const auto there = costs.between(0, 1, 0);
  ASSERT_TRUE(there);
  EXPECT_EQ(there->latency_ns, 1 << 20);
  EXPECT_EQ(there->bytes_per_s, 1 << 20);
  EXPECT_EQ(there->cost_ns, (1 << 20) + 4096LL * 1'000'000'000 / (1 << 20));
  EXPECT_EQ(costs.between(1, 0, 0)->cost_ns, there->cost_ns);
  EXPECT_FALSE(costs.between(0, 1, 1)) << "another network";
  EXPECT_FALSE(costs.between(0, 7, 0)) << "another host";
  EXPECT_EQ(costs.dearest_ns(0), there->cost_ns);
  EXPECT_EQ(costs.dearest_ns(1), 0);
  // It answered so late that there was no time for a stream.
  measured_link slow = to(1, 1 << 20);
  slow.bandwidth = measured_link::unknown;
  const link_costs no_stream({{slow}, {}}, own_hosts(2));
  EXPECT_EQ(no_stream.between(0, 1, 0)->cost_ns, 1 << 20);
  EXPECT_EQ(no_stream.between(0, 1, 0)->bytes_per_s, 0);
}

TEST(link_costs, of_a_host_are_those_of_all_its_nodes) {
  const link_costs costs({{to(2, 5'000)}, {}, {}, {}}, {0, 0, 1, 1});
  EXPECT_TRUE(costs.between(0, 1, 0));
  EXPECT_EQ(costs.between(0, 1, 0)->cost_ns, costs.between(1, 0, 0)->cost_ns);
}

TEST(link_costs, a_slow_network_is_gone_around_by_two_fast_ones) {
  const link_costs costs({{to(1, 10'000), to(2, 100'000)}, {to(2, 10'000)}, {}}, own_hosts(3));
  const routes from_0 = ways_of(0, 3, costs), from_1 = ways_of(1, 3, costs);
  EXPECT_EQ(from_0.to(2).next, 1);
  EXPECT_EQ(from_0.to(2).hops, 2);
  EXPECT_EQ(from_0.to(2).latency_ns, 2 * from_step(to_step(10'000)));
  EXPECT_EQ(from_0.to(2).bytes_per_s, from_step(to_step(1'000'000'000)));
  EXPECT_TRUE(from_1.is_gateway());
  // Not by little: a node on the way has work with it.
  const link_costs similar({{to(1, 10'000), to(2, 40'000)}, {to(2, 10'000)}, {}}, own_hosts(3));
  EXPECT_TRUE(ways_of(0, 3, similar).is_neighbour(2));
  // Narrow, though near.
  const link_costs narrow({{to(1, 10'000), to(2, 10'000, 1'000'000)}, {to(2, 10'000)}, {}},
                          own_hosts(3));
  EXPECT_EQ(ways_of(0, 3, narrow).to(2).next, 1);
}

// Whatever the noise, up to a factor of two up and down.
TEST(link_costs, noise_on_equal_networks_makes_no_gateways) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> noise(-0.8, 0.8);
  for (int round = 0; round < 100; ++round) {
    const std::size_t nodes = 3 + random() % 8;
    table told(nodes);
    for (unsigned a = 0; a < nodes; ++a) {
      for (unsigned b = a + 1; b < nodes; ++b) {
        const auto noisy = [&](double value) {
          return static_cast<std::int64_t>(value * std::exp2(noise(random)));
        };
        told[a].push_back(to(b, noisy(30'000), noisy(1e9)));
      }
    }
    const link_costs costs(told, own_hosts(nodes));
    for (node_id a = 0; a < nodes; ++a) {
      const routes ways = ways_of(a, nodes, costs);
      EXPECT_FALSE(ways.is_gateway());
      for (node_id b = 0; b < nodes; ++b) EXPECT_EQ(ways.is_neighbour(b), a != b);
    }
  }
}

// Against all ways there are: nothing goes in a circle, nothing goes directly that should not, and
// what goes costs no more than the margin allows.
TEST(link_costs, any_networks_make_ways_that_end) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    const std::size_t nodes = 2 + random() % 10;
    table told(nodes);
    std::vector<std::int64_t> raw(nodes * nodes, INT64_MAX / 4);
    for (unsigned a = 0; a < nodes; ++a) {
      raw[a * nodes + a] = 0;
      for (unsigned b = 0; b < a; ++b) {
        if (b + 1 != a && random() % 3 == 0) continue;
        told[a].push_back({static_cast<node_id>(b), 0, static_cast<std::uint8_t>(random() % 81),
                           static_cast<std::uint8_t>(random() % 81)});
        const measured_link& m = told[a].back();
        raw[a * nodes + b] = raw[b * nodes + a] =
            from_step(m.latency) + 4096'000'000'000 / from_step(m.bandwidth);
      }
    }
    std::vector<std::int64_t> best = raw;
    for (std::size_t by = 0; by < nodes; ++by) {
      for (std::size_t a = 0; a < nodes; ++a) {
        for (std::size_t b = 0; b < nodes; ++b)
          best[a * nodes + b] =
              std::min(best[a * nodes + b], best[a * nodes + by] + best[by * nodes + b]);
      }
    }
    const link_costs costs(told, own_hosts(nodes));
    std::vector<routes> tables;
    for (node_id a = 0; a < nodes; ++a) tables.push_back(ways_of(a, nodes, costs));
    for (node_id a = 0; a < nodes; ++a) {
      for (node_id b = 0; b < nodes; ++b) {
        if (a == b) continue;
        EXPECT_EQ(tables[a].to(b).cost_ns, best[a * nodes + b]);
        std::int64_t really = 0;
        node_id at = a;
        for (unsigned hops = 0; at != b; ++hops) {
          ASSERT_LE(hops, nodes) << "a message goes in a circle";
          const node_id next = tables[at].to(b).next;
          really += raw[at * nodes + next];
          at = next;
        }
        EXPECT_LE(really, link_costs::margin * best[a * nodes + b]);
        const bool is_direct = raw[a * nodes + b] <= link_costs::margin * best[a * nodes + b];
        EXPECT_EQ(tables[a].is_neighbour(b), is_direct);
      }
    }
  }
}

TEST(link_costs, what_no_node_can_have_told_is_refused) {
  const auto refused = [](const measured_link& m, std::vector<std::uint16_t> host_of = {0, 1}) {
    EXPECT_THROW(link_costs({{m}, {}}, host_of), error);
  };
  refused({2, 0, 1, 1});
  refused({65535, 0, 1, 1});
  refused({0, 0, 1, 1});
  refused({1, 0, 1, 1}, {4, 4});
  refused({1, measured_link::networks_max, 1, 1});
  refused({1, 0, measured_link::step_max + 1, 1});
  refused({1, 0, measured_link::unknown, 1});
  refused({1, 0, 1, measured_link::step_max + 1});
  EXPECT_THROW(link_costs({{}, {}, {to(0, 1)}}, {0, 1}), error) << "of a node that there is not";
  table all(1);
  for (unsigned n = 1; n <= link_costs::hosts_max; ++n) all[0].push_back(to(n, 1000));
  EXPECT_THROW(link_costs(all, own_hosts(all[0].size() + 1)), error);
  all[0].pop_back();
  EXPECT_NO_THROW(link_costs(all, own_hosts(all[0].size() + 1)));
}

}  // namespace
}  // namespace strata::cluster
