// SPDX-License-Identifier: Apache-2.0
// The ways that messages take, against all ways there are.
#include "cluster/ways/routes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace strata::cluster {
namespace {

constexpr std::int64_t none = -1;

struct network {
  unsigned nodes;
  std::vector<std::int64_t> costs;  // by both nodes
  std::int64_t& at(unsigned a, unsigned b) { return costs[a * nodes + b]; }
  [[nodiscard]] std::optional<std::int64_t> operator()(node_id a, node_id b) const {
    const std::int64_t c = costs[a * nodes + b];
    return c == none ? std::nullopt : std::optional(c);
  }
};

network random_network(std::mt19937_64& random) {
  network n{static_cast<unsigned>(2 + random() % 12), {}};
  n.costs.assign(n.nodes * n.nodes, none);
  for (unsigned a = 0; a < n.nodes; ++a) {
    for (unsigned b = 0; b < a; ++b) {
      if (random() % 3 == 0) n.at(a, b) = n.at(b, a) = 1 + static_cast<std::int64_t>(random() % 5);
    }
  }
  return n;
}

// Source: R. W. Floyd, "Algorithm 97: shortest path", 1962.
std::vector<std::int64_t> all_costs(const network& n) {
  std::vector<std::int64_t> best = n.costs;
  const auto at = [&](unsigned a, unsigned b) -> std::int64_t& { return best[a * n.nodes + b]; };
  for (unsigned a = 0; a < n.nodes; ++a) at(a, a) = 0;
  for (unsigned by = 0; by < n.nodes; ++by) {
    for (unsigned a = 0; a < n.nodes; ++a) {
      for (unsigned b = 0; b < n.nodes; ++b) {
        if (at(a, by) == none || at(by, b) == none) continue;
        const std::int64_t c = at(a, by) + at(by, b);
        if (at(a, b) == none || c < at(a, b)) at(a, b) = c;
      }
    }
  }
  return best;
}

TEST(routes, are_the_cheapest_and_end_where_they_should) {
  std::mt19937_64 random(20);
  for (int round = 0; round < 500; ++round) {
    const network n = random_network(random);
    const std::vector<std::int64_t> best = all_costs(n);
    std::vector<routes> tables;
    for (unsigned a = 0; a < n.nodes; ++a)
      tables.emplace_back(static_cast<node_id>(a), static_cast<node_id>(n.nodes), n);
    std::set<unsigned> used;  // as gateways
    for (unsigned a = 0; a < n.nodes; ++a) {
      for (unsigned b = 0; b < n.nodes; ++b) {
        const auto to = static_cast<node_id>(b);
        const routes::way first = tables[a].to(to);
        const std::int64_t expected = best[a * n.nodes + b];
        if (a == b || expected == none) {
          EXPECT_EQ(first.hops, 0);
          continue;
        }
        EXPECT_EQ(first.cost_ns, expected);
        // As messages go: every node on the way asks its own table.
        unsigned at = a, hops = 0;
        for (; at != b && hops <= n.nodes; ++hops) {
          if (at != a) used.insert(at);
          at = tables[at].to(to).next;
        }
        EXPECT_EQ(at, b) << "a message from " << a << " goes in a circle";
      }
      const bool cut_off = std::any_of(best.begin() + a * n.nodes, best.begin() + (a + 1) * n.nodes,
                                       [](std::int64_t c) { return c == none; });
      EXPECT_EQ(tables[a].unreachable(n.nodes).has_value(), cut_off);
    }
    for (const unsigned gateway : used) EXPECT_TRUE(tables[gateway].is_gateway());
  }
}

// Nodes come to a job one after the other. Each finds the same ways as the others, whenever it
// came; no way between two others is another than before; nothing goes in a circle.
TEST(routes, of_nodes_that_come_end_there) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    const network n = random_network(random);
    const auto all = static_cast<node_id>(n.nodes);
    const auto founders = static_cast<node_id>(1 + random() % all);
    node_id there = founders;
    const auto cost = [&](node_id a, node_id b) {
      return a < there && b < there ? n(a, b) : std::optional<std::int64_t>();
    };
    std::vector<routes> tables;
    for (node_id a = 0; a < founders; ++a) tables.emplace_back(a, all, founders, cost);
    while (there < all) {
      const node_id newcomer = there++;
      for (routes& r : tables) {
        const routes before = r;
        r.add(newcomer, cost);
        for (node_id b = 0; b < newcomer; ++b) {
          EXPECT_EQ(r.to(b).next, before.to(b).next);
          EXPECT_EQ(r.to(b).hops, before.to(b).hops);
        }
      }
      tables.emplace_back(newcomer, all, founders, cost);
    }
    for (node_id a = 0; a < all; ++a) {
      EXPECT_FALSE(tables[a].is_gateway() && a >= founders);
      for (node_id b = 0; b < all; ++b) {
        if (a == b || tables[a].to(b).hops == 0) continue;
        EXPECT_EQ(tables[a].to(b).cost_ns, tables[b].to(a).cost_ns);
        node_id at = a;
        for (unsigned hops = 0; at != b; ++hops) {
          ASSERT_LE(hops, n.nodes) << "a message goes in a circle";
          const routes::way w = tables[at].to(b);
          at = w.next;
          if (at != b) {
            EXPECT_LT(at, founders);
            EXPECT_LT(tables[at].to(b).cost_ns, w.cost_ns);
          }
        }
      }
    }
  }
}

TEST(routes, of_one_network_are_direct) {
  const routes plain(2, 5);
  const routes computed(2, 5, [](node_id, node_id) { return std::optional<std::int64_t>(7); });
  for (const routes& r : {plain, computed}) {
    EXPECT_FALSE(r.is_gateway());
    EXPECT_FALSE(r.unreachable(r.nodes()));
    for (node_id n = 0; n < 5; ++n) {
      EXPECT_EQ(r.to(n).next, n);
      EXPECT_EQ(r.is_neighbour(n), n != 2);
    }
  }
}

}  // namespace
}  // namespace strata::cluster
