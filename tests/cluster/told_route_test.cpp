// SPDX-License-Identifier: Apache-2.0
// What a program is told of a way, measured or not.
#include "cluster/ways/told_route.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "strata/error.hpp"
#include "strata/runtime.hpp"

namespace strata::cluster {
namespace {

routes::way way_of(std::uint16_t hops, std::int64_t cost_ns, std::int64_t latency_ns = 0,
                   std::int64_t bytes_per_s = 0) {
  return {7, hops, cost_ns, latency_ns, bytes_per_s};
}

TEST(told_route, is_what_was_measured) {
  const route r = told_route(way_of(2, 50'000, 30'000, 1'000'000), first_hop::network, "tcp");
  EXPECT_TRUE(r.is_measured);
  EXPECT_EQ(r.next, 7);
  EXPECT_EQ(r.hops, 2U);
  EXPECT_EQ(r.transport, "tcp");
  EXPECT_EQ(r.cost_ns, 50'000);
  EXPECT_EQ(r.latency_ns, 30'000);
  EXPECT_EQ(r.bytes_per_s, 1'000'000);
}

// In a job of one network, where ways have no cost.
TEST(told_route, says_that_memory_is_nearer_than_a_network_and_its_own_host_than_another) {
  const route memory = told_route(way_of(1, 0), first_hop::memory, "shm");
  const route here = told_route(way_of(1, 0), first_hop::within_host, "tcp");
  const route far = told_route(way_of(1, 0), first_hop::network, "tcp");
  for (const route* const r : {&memory, &here, &far}) EXPECT_FALSE(r->is_measured);
  EXPECT_GT(memory.cost_ns, 0);
  EXPECT_LT(memory.cost_ns, here.cost_ns);
  EXPECT_LT(here.cost_ns, far.cost_ns);
  EXPECT_LT(memory.latency_ns, here.latency_ns);
  EXPECT_LT(here.latency_ns, far.latency_ns);
  EXPECT_GT(memory.bytes_per_s, here.bytes_per_s);
  EXPECT_GT(here.bytes_per_s, far.bytes_per_s);
}

// Named networks that were not measured have the cost that their interfaces' speed makes.
TEST(told_route, divides_a_cost_that_nobody_measured) {
  const std::int64_t gigabit = nominal_network.latency_ns + typical_bytes * 8;
  const route one = told_route(way_of(1, gigabit), first_hop::network, "udp");
  EXPECT_FALSE(one.is_measured);
  EXPECT_EQ(one.cost_ns, gigabit);
  EXPECT_EQ(one.latency_ns, nominal_network.latency_ns);
  EXPECT_EQ(one.bytes_per_s, 125'000'000);
  const route two = told_route(way_of(2, 2 * gigabit), first_hop::network, "udp");
  EXPECT_EQ(two.latency_ns, 2 * nominal_network.latency_ns);
  EXPECT_EQ(two.bytes_per_s, 125'000'000);
  // One of the two is memory.
  const route part = told_route(way_of(2, nominal_network.cost_ns() + nominal_memory.cost_ns()),
                                first_hop::memory, "shm");
  EXPECT_EQ(part.cost_ns, nominal_network.cost_ns() + nominal_memory.cost_ns());
  EXPECT_GT(part.latency_ns, 0);
  EXPECT_GT(part.bytes_per_s, 0);
}

// Of UCX and then TCP: what is not latency is bandwidth.
TEST(told_route, divides_the_cost_of_a_way_over_two_kinds_by_their_latencies) {
  const std::int64_t latency_ns =
      nominal_of(network_kind::ucx).latency_ns + nominal_of(network_kind::tcp).latency_ns;
  const route r = told_route(way_of(2, latency_ns + 2 * typical_bytes * 8, latency_ns),
                             first_hop::network, "ucx");
  EXPECT_FALSE(r.is_measured);
  EXPECT_EQ(r.latency_ns, latency_ns);
  EXPECT_EQ(r.bytes_per_s, 125'000'000);
}

TEST(told_route, through_memory_alone_is_nominal_beside_what_was_measured) {
  const route r =
      told_route(way_of(1, nominal_memory.cost_ns(), 0, link::unlimited), first_hop::memory, "shm");
  EXPECT_FALSE(r.is_measured);
  EXPECT_EQ(r.cost_ns, nominal_memory.cost_ns());
  EXPECT_EQ(r.latency_ns, nominal_memory.latency_ns);
  EXPECT_EQ(r.bytes_per_s, nominal_memory.bytes_per_s);
}

TEST(nearest_node, of_a_program_that_runs_alone_is_the_only_one) {
  constexpr std::array<node_id_t, 2> other_first{1, 0};
  EXPECT_THROW((void)nearest_node(0, other_first), misuse_error);  // outside a runtime
  options settings;
  settings.workers = 1;
  runtime rt(settings);
  rt.run([&] {
    EXPECT_EQ(nearest_node(0, other_first), 0);
    EXPECT_THROW((void)nearest_node(1, other_first), misuse_error);
    EXPECT_THROW((void)nearest_node(0, std::array<node_id_t, 1>{1}), misuse_error);
    EXPECT_THROW((void)nearest_node(0, {}), misuse_error);
    EXPECT_EQ(route_to(0).cost_ns, 0);
  });
}

}  // namespace
}  // namespace strata::cluster
