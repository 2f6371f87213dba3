// SPDX-License-Identifier: Apache-2.0
#include "os/topology.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "strata/error.hpp"

namespace {

using strata::os::distance;
using strata::os::topology;

std::vector<int> first(int count) {
  std::vector<int> cpus(static_cast<std::size_t>(count));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

// 2 packages, each with 2 L3 of 2 L2 of 2 cores of 2 hyper-threads; CPUs 0 to 31 in tree order.
topology large() { return topology::synthetic("pack:2 l3:2 l2:2 core:2 pu:2"); }

TEST(topology, distances_follow_what_is_shared) {
  const topology machine = large();
  EXPECT_EQ(machine.between(0, 0), distance::core);
  EXPECT_EQ(machine.between(0, 1), distance::core);
  EXPECT_EQ(machine.between(0, 2), distance::l2);
  EXPECT_EQ(machine.between(0, 4), distance::l3);
  EXPECT_EQ(machine.between(0, 8), machine.between(8, 0));
  EXPECT_GT(machine.between(0, 8), distance::l3);
  EXPECT_LT(machine.between(0, 8), distance::machine);
  EXPECT_EQ(machine.between(0, 16), distance::machine);
  EXPECT_EQ(machine.between(0, 99), distance::machine);
  EXPECT_EQ(machine.between(-1, 0), distance::machine);
}

TEST(topology, numa_nodes_inside_a_package_separate) {
  const topology machine = topology::synthetic("pack:2 numa:2 core:2 pu:1");
  EXPECT_EQ(machine.between(0, 1), distance::numa);
  EXPECT_EQ(machine.between(0, 2), distance::package);
  EXPECT_EQ(machine.between(0, 4), distance::machine);
}

TEST(topology, steals_from_near_workers_first) {
  const topology machine = large();
  const auto cpus = first(32);
  for (unsigned self = 0; self < 32; ++self) {
    const auto order = machine.steal_order(cpus, self);
    ASSERT_EQ(order.size(), 31u);
    EXPECT_EQ(std::count(order.begin(), order.end(), self), 0);
    EXPECT_EQ(order.front(), self ^ 1u);  // the other hyper-thread
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end(), [&](unsigned a, unsigned b) {
      return machine.between(cpus[self], cpus[a]) < machine.between(cpus[self], cpus[b]);
    }));
  }
}

TEST(topology, equally_near_thieves_begin_at_different_doors) {
  const topology machine = topology::synthetic("core:4 pu:1");
  const auto cpus = first(4);
  EXPECT_EQ(machine.steal_order(cpus, 0), (std::vector<unsigned>{1, 2, 3}));
  EXPECT_EQ(machine.steal_order(cpus, 2), (std::vector<unsigned>{3, 0, 1}));
  EXPECT_TRUE(machine.steal_order(first(1), 0).empty());
}

TEST(topology, places_one_worker_per_core_before_hyper_threads) {
  const topology machine = topology::synthetic("pack:1 core:2 pu:2");
  EXPECT_EQ(machine.place(first(4), 2), (std::vector<int>{0, 2}));
  EXPECT_EQ(machine.place(first(4), 4), (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(machine.place(first(4), 6), (std::vector<int>{0, 2, 1, 3, 0, 2}));
  EXPECT_EQ(machine.place(std::vector<int>{1, 3}, 2), (std::vector<int>{1, 3}));
  EXPECT_EQ(machine.place(std::vector<int>{1, 77}, 3), (std::vector<int>{1, 77, 1}));
}

TEST(topology, nonsense_is_refused) { EXPECT_THROW(topology::synthetic("pack:x"), strata::error); }

TEST(topology, this_machine_contains_the_allowed_cpus) {
  const auto allowed = strata::os::allowed_cpus();
  ASSERT_FALSE(allowed.empty());
  EXPECT_TRUE(std::is_sorted(allowed.begin(), allowed.end()));
  EXPECT_EQ(topology::machine().place(allowed, static_cast<unsigned>(allowed.size())).size(),
            allowed.size());
  EXPECT_EQ(&topology::machine(), &topology::machine());
}

TEST(affinity, binds_and_unbinds_the_current_thread_only) {
  const auto before = strata::os::allowed_cpus();
  std::thread([&] {
    ASSERT_TRUE(strata::os::bind_current_thread(before.back()));
    EXPECT_EQ(strata::os::allowed_cpus(), std::vector<int>{before.back()});
    EXPECT_EQ(strata::os::choose_workers().workers, 1u);
    ASSERT_TRUE(strata::os::bind_current_thread(before));
    EXPECT_EQ(strata::os::allowed_cpus(), before);
  }).join();
  EXPECT_EQ(strata::os::allowed_cpus(), before);
}

TEST(affinity, a_cpu_that_does_not_exist_is_refused) {
  EXPECT_FALSE(strata::os::bind_current_thread(1'000'000));
  EXPECT_FALSE(strata::os::bind_current_thread(-1));
  EXPECT_FALSE(strata::os::bind_current_thread(std::span<const int>()));
}

TEST(affinity, the_choice_of_workers_explains_itself) {
  const auto choice = strata::os::choose_workers();
  EXPECT_GE(choice.workers, 1u);
  EXPECT_LE(choice.workers, strata::os::allowed_cpus().size());
  EXPECT_EQ(choice.reason.find(std::to_string(choice.workers) + " worker"), 0u);
  EXPECT_NE(choice.reason.find("quota"), std::string::npos);
}

TEST(to_ranges, joins_neighbours) {
  using strata::os::to_ranges;
  EXPECT_EQ(to_ranges(std::vector<int>{}), "");
  EXPECT_EQ(to_ranges(std::vector<int>{3}), "3");
  EXPECT_EQ(to_ranges(std::vector<int>{0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

}  // namespace
