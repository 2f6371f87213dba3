// SPDX-License-Identifier: Apache-2.0
// Jobs on several networks, which are measured before the job begins: by which nodes messages then
// go, over networks of any speed, some of which lose, double, delay, or answer nothing at all.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "ask_fib.hpp"
#include "sim/simulated_job.hpp"
#include "strata/fiber.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

std::optional<cluster::link> all_are_on_one(net::node_id, net::node_id) { return 13'000; }

// A job that has measured its networks.
class measured_job {
 public:
  measured_job(net::node_id nodes, const sim::network_model& network, std::uint64_t seed,
               const std::function<void(sim::world&)>& arrange,
               const cluster::routes::link_cost& links = all_are_on_one)
      : world(network, seed), nodes_(nodes) {
    arrange(world);
    const sim::job_model model{
        .nodes = nodes, .cost = two_microseconds, .links = links, .measures = true};
    job.emplace(world, model);
    EXPECT_TRUE(world.run([&] { return job->has_begun(); })) << "it never begins";
    began_ns = world.now_ns();
  }

  // Everything arrives, and once: the answer is right, and as much is received as was sent.
  void computes() {
    answer a;
    job->node(0).as_worker([&] { token<ask_fib>(16, &a); });
    bool quiet = false;
    job->node(0).protocols.quiet.detect([&] { quiet = true; });
    EXPECT_TRUE(world.run([&] { return quiet; })) << "nothing happens any more";
    EXPECT_EQ(job->failure(), nullptr);
    EXPECT_EQ(a.value, 987);
    std::uint64_t sent = 0, received = 0;
    for (net::node_id n = 0; n < nodes_; ++n) {
      sent += job->node(n).protocols.counts.sent;
      received += job->node(n).protocols.counts.received;
    }
    EXPECT_EQ(sent, received);
    EXPECT_GT(sent, 0U);
  }
  // As messages go: each node on the way asks its own table.
  void goes_nowhere_in_a_circle() {
    for (net::node_id a = 0; a < nodes_; ++a) {
      for (net::node_id b = 0; b < nodes_; ++b) {
        net::node_id at = a;
        for (unsigned hops = 0; at != b; ++hops) {
          ASSERT_LT(hops, nodes_) << "from " << a << " to " << b;
          at = job->node(at).way_to(b).next;
        }
      }
    }
  }

  sim::world world;
  std::optional<sim::job> job;
  std::int64_t began_ns = 0;

 private:
  net::node_id nodes_;
};

constexpr sim::network_model misbehaving{.jitter_ns = 3'000, .loss = 0.02, .duplication = 0.02};

TEST(simulated_measuring, goes_around_a_network_that_is_slow) {
  for (const sim::own_network slow :
       {sim::own_network{.latency_ns = 2'000'000}, sim::own_network{.bytes_per_ns = 0.02}}) {
    for (const std::uint64_t seed : seeds()) {
      STRATA_WITH_SEED(seed);
      measured_job m(3, misbehaving, seed, [&](sim::world& w) { w.lay(0, 2, slow); });
      EXPECT_EQ(m.job->node(0).way_to(2).next, 1);
      EXPECT_EQ(m.job->node(2).way_to(0).next, 1);
      EXPECT_EQ(m.job->node(0).way_to(1).hops, 1);
      m.computes();
      EXPECT_GT(m.job->node(1).forwarded(), 0U);
    }
  }
}

TEST(simulated_measuring, leaves_equal_networks_alone) {
  // Up to half as long again as it should take, at random.
  const sim::network_model noisy{.latency_ns = 20'000, .jitter_ns = 20'000, .loss = 0.01};
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    measured_job m(6, noisy, seed, [](sim::world&) {});
    for (net::node_id a = 0; a < 6; ++a) {
      for (net::node_id b = 0; b < 6; ++b) {
        EXPECT_EQ(m.job->node(a).way_to(b).hops, a != b ? 1 : 0) << a << " to " << b;
      }
    }
    m.computes();
    for (net::node_id n = 0; n < 6; ++n) EXPECT_EQ(m.job->node(n).forwarded(), 0U);
  }
}

TEST(simulated_measuring, finds_what_the_network_has) {
  measured_job m(
      2, {}, 1, [](sim::world& w) { w.lay(0, 1, {.latency_ns = 1'000'000, .bytes_per_ns = 0.1}); });
  const cluster::routes::way w = m.job->node(0).way_to(1);
  EXPECT_NEAR(static_cast<double>(w.latency_ns), 1e6, 0.25e6);
  EXPECT_NEAR(static_cast<double>(w.bytes_per_s), 1e8, 0.25e8);
  EXPECT_EQ(m.job->node(1).way_to(0).cost_ns, w.cost_ns);
}

TEST(simulated_measuring, waits_for_no_silent_neighbour) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    measured_job m(4, misbehaving, seed, [](sim::world& w) { w.cut(1, 3); });
    EXPECT_LE(m.began_ns, 2'100'000'000);
    EXPECT_EQ(m.job->node(1).way_to(3).hops, 2);
    EXPECT_EQ(m.job->node(3).way_to(1).hops, 2);
    // What was asked in vain arrives when nobody waits for it any more.
    m.world.join(1, 3);
    m.computes();
    EXPECT_EQ(m.job->failure(), nullptr);
  }
}

TEST(simulated_measuring, takes_what_comes_before_the_job_has_begun_here) {
  // Nothing but the launcher's word is slow, so that many speak to nodes which have not heard it.
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    measured_job m(20, {.latency_ns = 500}, seed, [](sim::world&) {});
    m.computes();
  }
}

TEST(simulated_measuring, over_any_networks_goes_in_no_circle) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    prng random(seed);
    constexpr net::node_id nodes = 12;
    std::vector<std::pair<net::node_id, net::node_id>> joined;
    for (net::node_id n = 1; n < nodes; ++n) {
      for (net::node_id other = 0; other < n; ++other) {
        if (other == n - 1 || random.below(3) == 0) joined.emplace_back(other, n);
      }
    }
    const auto arrange = [&](sim::world& w) {
      for (const auto& [a, b] : joined) {
        w.lay(a, b,
              {.latency_ns = static_cast<std::int64_t>(1'000ULL << random.below(10)),
               .bytes_per_ns = 0.1 * static_cast<double>(1 + random.below(20))});
      }
    };
    const auto links = [&](net::node_id a, net::node_id b) -> std::optional<cluster::link> {
      const auto pair = std::minmax(a, b);
      if (std::find(joined.begin(), joined.end(), std::pair(pair.first, pair.second)) ==
          joined.end())
        return std::nullopt;
      return 13'000;
    };
    measured_job m(nodes, misbehaving, seed, arrange, links);
    m.goes_nowhere_in_a_circle();
    m.computes();
  }
}

}  // namespace
}  // namespace strata::test
