// SPDX-License-Identifier: Apache-2.0
#include "launch/share_cores.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace {

using namespace strata::launch;
using strata::os::topology;
using cpus = std::vector<int>;

cpus first(int count) {
  cpus all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(share_cores, contiguous_and_disjoint) {
  const topology machine = topology::synthetic("pack:2 core:4 pu:1");
  const core_plan plan = share_cores(machine, first(8), 8, {.nodes = 3});
  EXPECT_EQ(plan.warning, "");
  EXPECT_EQ(plan.nodes[0].cpus, (cpus{0, 1, 2}));
  EXPECT_EQ(plan.nodes[1].cpus, (cpus{3, 4, 5}));
  EXPECT_EQ(plan.nodes[2].cpus, (cpus{6, 7}));
  EXPECT_EQ(plan.nodes[2].workers, 2U);
}

TEST(share_cores, both_threads_of_a_core_go_to_one_node) {
  const topology machine = topology::synthetic("core:4 pu:2");
  const core_plan plan = share_cores(machine, first(8), 8, {.nodes = 2});
  EXPECT_EQ(plan.nodes[0].cpus, (cpus{0, 1, 2, 3}));
  EXPECT_EQ(plan.nodes[1].cpus, (cpus{4, 5, 6, 7}));
}

TEST(share_cores, few_workers_get_whole_cores) {
  const topology machine = topology::synthetic("core:4 pu:2");
  const core_plan plan = share_cores(machine, first(8), 8, {.nodes = 2, .workers = 2});
  std::set<int> cores;
  for (const core_share& share : plan.nodes) {
    EXPECT_EQ(share.workers, 2U);
    for (const int cpu : share.cpus) cores.insert(cpu / 2);
  }
  EXPECT_EQ(cores.size(), 4U);
}

TEST(share_cores, only_what_is_allowed) {
  const topology machine = topology::synthetic("pack:2 core:4 pu:1");
  const core_plan plan = share_cores(machine, cpus{1, 3, 6, 7}, 4, {.nodes = 2});
  EXPECT_EQ(plan.nodes[0].cpus, (cpus{1, 3}));
  EXPECT_EQ(plan.nodes[1].cpus, (cpus{6, 7}));
}

TEST(share_cores, a_quota_is_law) {
  const topology machine = topology::synthetic("core:8 pu:1");
  const core_plan plan = share_cores(machine, first(8), 2, {.nodes = 2});
  for (const core_share& share : plan.nodes) EXPECT_EQ(share.workers, 1U);
  EXPECT_EQ(plan.warning, "");
}

TEST(share_cores, more_nodes_than_cores_are_not_bound_and_told) {
  const topology machine = topology::synthetic("core:2 pu:1");
  const core_plan plan = share_cores(machine, first(2), 2, {.nodes = 5});
  ASSERT_EQ(plan.nodes.size(), 5U);
  for (const core_share& share : plan.nodes) {
    EXPECT_EQ(share.workers, 1U);
    EXPECT_TRUE(share.cpus.empty());
  }
  EXPECT_EQ(plan.warning,
            "5 workers of 5 nodes share 2 cores: expect no speed-up from the surplus");
  EXPECT_NE(share_cores(machine, first(2), 2, {.nodes = 1, .workers = 3}).warning, "");
}

TEST(share_cores, unbound_on_request) {
  const topology machine = topology::synthetic("core:4 pu:1");
  const core_plan plan = share_cores(machine, first(4), 4, {.nodes = 2, .bind = false});
  EXPECT_TRUE(plan.nodes[0].cpus.empty());
  EXPECT_EQ(plan.nodes[0].workers, 2U);
  EXPECT_EQ(to_text(plan.nodes[0]), "2 workers, not bound");
  EXPECT_EQ(to_text({.cpus = {3}, .workers = 1}), "1 worker on CPU 3");
}

TEST(share_rest, what_no_present_node_is_bound_to) {
  const topology machine = topology::synthetic("core:8 pu:1");
  const core_share a{{0, 1, 2}, 3}, b{{3, 4}, 2}, loose{{}, 1};
  const auto rest = [&](const std::vector<core_share>& present, const core_wishes& wanted) {
    return share_rest(machine, first(8), 8, present, wanted);
  };
  EXPECT_EQ(rest({a, b}, {.nodes = 1}).cpus, (cpus{5, 6, 7}));
  EXPECT_EQ(rest({b}, {.nodes = 1, .workers = 2}).workers, 2U);
  // One of several that come; more than there are cores left come.
  EXPECT_EQ(rest({a, b}, {.nodes = 2}).cpus, (cpus{5, 6}));
  EXPECT_EQ(rest({a, b}, {.nodes = 9}).cpus, cpus{5});
  EXPECT_EQ(rest({a, b, loose}, {.nodes = 1}).workers, 3U);
  EXPECT_TRUE(rest({a, b}, {.nodes = 1, .bind = false}).cpus.empty());
}

TEST(share_rest, what_does_not_fit_is_not_bound) {
  const topology machine = topology::synthetic("core:4 pu:1");
  const core_share all{{0, 1, 2, 3}, 4}, half{{0, 1}, 2}, loose{{}, 4};
  const auto rest = [&](const core_share& present, unsigned cores, unsigned workers) {
    return share_rest(machine, first(4), cores, std::vector{present},
                      {.nodes = 1, .workers = workers});
  };
  EXPECT_TRUE(rest(all, 4, 0).cpus.empty());
  EXPECT_EQ(rest(all, 4, 0).workers, 1U);
  EXPECT_TRUE(rest(half, 4, 3).cpus.empty());
  EXPECT_EQ(rest(half, 4, 3).workers, 3U);
  // The quota is used up; the job is one in which nobody is bound.
  EXPECT_TRUE(rest(half, 2, 0).cpus.empty());
  EXPECT_TRUE(rest(loose, 4, 0).cpus.empty());
}

}  // namespace
