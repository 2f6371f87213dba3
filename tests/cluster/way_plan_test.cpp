// SPDX-License-Identifier: Apache-2.0
// Plans of ways between nodes, and what comes by new ways before its turn.
#include "cluster/ways/way_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cluster/ways/succession.hpp"
#include "launch/job.hpp"

namespace strata::cluster {
namespace {

std::vector<std::byte> bytes_of(const way_plan& p) {
  const writer packed = pack(p);
  return {packed.bytes().begin(), packed.bytes().end()};
}

way_plan some_plan() {
  way_plan p = first_plan(4);
  p.number = 7;
  p.forwarders = {0, 2};
  p.about_connections = {{{0, 3}, 1}, {{1, 2}, 2}};
  p.measured = {{1, {3, 0, 20, 60}}, {2, {0, 5, 80, launch::measured_link::unknown}}};
  return p;
}

TEST(way_plan, is_the_same_on_the_other_side) {
  for (const way_plan& p : {first_plan(1), first_plan(4096), some_plan()})
    EXPECT_EQ(unpack_plan(reader(bytes_of(p)), 4096), p);
  EXPECT_TRUE(some_plan().forwards(2));
  EXPECT_FALSE(some_plan().forwards(1));
  way_plan largest = first_plan(4096);
  for (node_id n = 1; n <= way_plan::cuts_max; ++n) largest.about_connections[{0, n}] = 3;
  largest.measured.assign(way_plan::measured_max, {1, {2, 0, 1, 1}});
  EXPECT_LE(pack(largest).size(), message_bytes_max);
  EXPECT_LE(pack(largest).size(), launch::plan_bytes_max);
  EXPECT_EQ(unpack_plan(reader(bytes_of(largest)), 4096), largest);
}

TEST(way_plan, refuses_what_node_0_cannot_have_said) {
  const auto refused = [](auto&& spoil) {
    way_plan p = some_plan();
    spoil(p);
    EXPECT_THROW((void)unpack_plan(reader(bytes_of(p)), 4), malformed);
  };
  refused([](way_plan& p) { p.members = {}; });
  refused([](way_plan& p) { p.members = {1, 2}; });
  refused([](way_plan& p) { p.members = {0, 4}; });
  refused([](way_plan& p) { p.members = {0, 2, 1}; });
  refused([](way_plan& p) { p.forwarders = {0, 2, 2}; });
  refused([](way_plan& p) { p.forwarders = {2}; });
  refused([](way_plan& p) { p.about_connections = {{{1, 1}, 1}}; });
  refused([](way_plan& p) { p.about_connections = {{{2, 1}, 1}}; });
  refused([](way_plan& p) { p.about_connections = {{{1, 4}, 1}}; });
  refused([](way_plan& p) { p.about_connections = {{{1, 2}, 0}}; });
  refused([](way_plan& p) { p.measured[0].by = 4; });
  refused([](way_plan& p) { p.measured[0].what.other = 4; });
  refused([](way_plan& p) { p.measured[0].what.other = 1; });
  refused([](way_plan& p) { p.measured[0].what.network = 1024; });
  refused([](way_plan& p) { p.measured[0].what.latency = 81; });
  refused([](way_plan& p) { p.measured[0].what.bandwidth = 81; });
  refused([](way_plan& p) { p.measured.assign(way_plan::measured_max + 1, {1, {2, 0, 1, 1}}); });
  // Two pairs in the wrong order: what belongs to each is as long as the other's.
  const auto swapped = [](way_plan p) {
    p.measured.clear();
    auto bytes = bytes_of(p);
    std::swap_ranges(bytes.end() - 8, bytes.end(), bytes.end() - 16);
    return bytes;
  };
  EXPECT_THROW((void)unpack_plan(reader(swapped(some_plan())), 4), malformed);
  const auto whole = bytes_of(some_plan());
  for (std::size_t n = 0; n < whole.size(); ++n) {
    try {
      (void)unpack_plan(reader(std::span(whole).first(n)), 4);
    } catch (const malformed&) {
    }
  }
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    auto noise = whole;
    for (int j = 0; j < 3; ++j) noise[random() % noise.size()] = static_cast<std::byte>(random());
    try {
      const way_plan p = unpack_plan(reader(noise), 4);
      EXPECT_EQ(p.forwarders.front(), 0);
      (void)p.ways(1, 4, [](node_id, node_id) { return std::optional<link>(1); });
    } catch (const malformed&) {
    }
  }
}

TEST(way_plan, goes_by_no_network_that_has_ended) {
  way_plan p = first_plan(3);
  const auto all = [](node_id, node_id) { return std::optional<link>(1); };
  EXPECT_EQ(p.ways(0, 3, all).to(2).hops, 1);
  p.about_connections = {{{0, 2}, 1}};
  EXPECT_TRUE(p.is_cut(2, 0));
  EXPECT_EQ(p.ways(0, 3, all).to(2).next, 1);
  EXPECT_EQ(p.ways(2, 3, all).to(0).next, 1);
  p.about_connections = {{{0, 2}, 2}};
  EXPECT_FALSE(p.is_cut(2, 0));
  EXPECT_EQ(p.ways(0, 3, all).to(2).hops, 1);
}

TEST(way_plan, takes_the_newer_of_two_measurements) {
  using launch::measured_link;
  // Nodes 0 and 1 are on the same host.
  const std::vector<std::uint16_t> host_of{0, 0, 1, 2, 3};
  const std::vector<std::vector<measured_link>> told{{{2, 0, 10, 60}}, {}, {{3, 0, 11, 60}}};
  const auto all = with_newer(told, {{2, {1, 0, 30, 60}}, {4, {3, 0, 12, 60}}}, host_of);
  const std::vector<std::vector<measured_link>> expected{
      {}, {}, {{3, 0, 11, 60}, {1, 0, 30, 60}}, {}, {{3, 0, 12, 60}}};
  EXPECT_EQ(all, expected);
  EXPECT_THROW((void)with_newer(told, {{2, {9, 0, 30, 60}}}, host_of), malformed);
}

TEST(succession, keeps_what_comes_by_the_new_way_until_the_old_one_ends) {
  succession s(4);
  const std::array<std::byte, 2> payload{std::byte{1}, std::byte{2}};
  EXPECT_FALSE(s.keeps(1, 3, kind::put, payload));
  s.await(1, false, 3);  // from ways of number 2 to those of number 3
  s.await(2, true, 3);   // from a direct network to somebody who forwards
  EXPECT_FALSE(s.keeps(1, 2, kind::put, payload));
  EXPECT_TRUE(s.keeps(1, 3, kind::put, payload));
  EXPECT_TRUE(s.keeps(1, {}, kind::get, payload)) << "a direct way is a new one";
  EXPECT_FALSE(s.keeps(2, {}, kind::put, payload));
  EXPECT_TRUE(s.keeps(2, 3, kind::put, payload));
  EXPECT_FALSE(s.keeps(3, 3, kind::put, payload)) << "nobody awaits its last word";
  const auto kept = s.ended(1);
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].k, kind::put);
  EXPECT_EQ(kept[1].k, kind::get);
  EXPECT_EQ(kept[1].payload.size(), 2U);
  EXPECT_FALSE(s.keeps(1, 3, kind::put, payload));
  EXPECT_TRUE(s.ended(1).empty());
  EXPECT_TRUE(s.awaits_somebody());
  EXPECT_EQ(s.ended(2).size(), 1U);
  EXPECT_FALSE(s.awaits_somebody());
}

}  // namespace
}  // namespace strata::cluster
