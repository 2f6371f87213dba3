// SPDX-License-Identifier: Apache-2.0
// What nodes of a job of PMIx tell each other, and what they make of it.
#include <gtest/gtest.h>

#include <limits>

#include "launch/messages.hpp"
#include "launch/pmix/cores.hpp"
#include "launch/pmix/host_memory.hpp"
#include "launch/pmix/seat.hpp"
#include "strata/error.hpp"

namespace {

using namespace strata::launch;
using namespace strata::launch::pmix;
using strata::os::topology;
using cpus = std::vector<int>;

constexpr double no_quota = std::numeric_limits<double>::infinity();

TEST(pmix_records, come_back_as_they_were) {
  seat s;
  s.process = 4711;
  s.first_there = 2;
  s.cpus = {0, 3, 5};
  s.memory = {4711, 7, 8, {1, 2, 3}};
  const seat there = unpack_seat(pack(s));
  EXPECT_EQ(there.process, 4711U);
  EXPECT_EQ(there.first_there, 2U);
  EXPECT_EQ(there.cpus, s.cpus);
  EXPECT_EQ(there.memory.roll, 8U);
  EXPECT_EQ(there.memory.mark, s.memory.mark);
  secret k;
  k.job = 99;
  k.key[31] = 5;
  k.transport = transport_choice::shm_udp;
  EXPECT_EQ(unpack_secret(pack(k)).key, k.key);
  EXPECT_EQ(unpack_secret(pack(k)).transport, transport_choice::shm_udp);
  const entry e = unpack_entry(pack(entry{"ab", {"10.0.0.1", 80, "worker"}}));
  EXPECT_EQ(e.build_id, "ab");
  EXPECT_EQ(e.where.worker, "worker");
  const std::vector<measured_link> links{{3, 1, 20, 60}, {4, 0, 80, measured_link::unknown}};
  EXPECT_EQ(unpack_links(pack(links)), links);
}

// `whole` is read; less or more of it is refused.
template <class Unpack>
void expect_exact(const std::string& whole, Unpack unpack) {
  EXPECT_NO_THROW(unpack(whole));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_THROW(unpack(whole.substr(0, bytes)), strata::error) << bytes;
  EXPECT_THROW(unpack(whole + "x"), strata::error);
  EXPECT_THROW(unpack("y" + whole.substr(1)), strata::error);
}

TEST(pmix_records, anything_else_is_refused) {
  seat s;
  s.cpus = {0, 1};
  expect_exact(pack(s), &unpack_seat);
  expect_exact(pack(secret{}), &unpack_secret);
  expect_exact(pack(entry{"ab", {"h", 1, ""}}), &unpack_entry);
  expect_exact(pack(std::vector<measured_link>{{3, 1, 20, 60}}), &unpack_links);
  expect_exact(pack_found("networks"), &unpack_found_networks);
  EXPECT_EQ(unpack_found_networks(pack_found("networks")), "networks");
  EXPECT_THROW(unpack_links(pack(std::vector<measured_link>{{3, 1, 200, 60}})), strata::error);
}

TEST(pmix_cores, nodes_with_cpus_of_their_own_keep_them) {
  const topology machine = topology::synthetic("pack:1 core:4 pu:1");
  const own_cores mine = choose_cores(machine, {{0, 1}, {2, 3}}, 1, no_quota, 0, true);
  EXPECT_EQ(mine.share.cpus, (cpus{2, 3}));
  EXPECT_EQ(mine.share.workers, 2U);
  EXPECT_EQ(mine.warning, "");
}

TEST(pmix_cores, nodes_with_the_same_cpus_share_them) {
  const topology machine = topology::synthetic("pack:1 core:4 pu:1");
  const std::vector<cpus> masks{{0, 1, 2, 3}, {0, 1, 2, 3}};
  EXPECT_EQ(choose_cores(machine, masks, 0, no_quota, 0, true).share.cpus, (cpus{0, 1}));
  EXPECT_EQ(choose_cores(machine, masks, 1, no_quota, 0, true).share.cpus, (cpus{2, 3}));
  EXPECT_TRUE(choose_cores(machine, masks, 1, no_quota, 0, false).share.cpus.empty());
}

TEST(pmix_cores, the_quota_is_of_all_nodes_of_the_host) {
  const topology machine = topology::synthetic("pack:1 core:4 pu:1");
  EXPECT_EQ(choose_cores(machine, {{0, 1}, {2, 3}}, 1, 2.0, 0, true).share.workers, 1U);
  EXPECT_EQ(choose_cores(machine, {{0}, {1}, {2}, {3}}, 1, 2.0, 0, true).share.workers, 1U);
}

TEST(pmix_cores, where_masks_cross_nobody_is_bound) {
  const topology machine = topology::synthetic("pack:1 core:4 pu:1");
  const own_cores mine = choose_cores(machine, {{0, 1, 2}, {2, 3}}, 1, no_quota, 0, true);
  EXPECT_TRUE(mine.share.cpus.empty());
  EXPECT_EQ(mine.share.workers, 2U);
}

TEST(pmix_memory, is_found_by_its_ticket_alone) {
  const auto made = host_memory::make();
  ASSERT_NE(made, nullptr);
  const auto found = host_memory::find(made->where());
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(found->has_left(1));
  made->leave(1);
  EXPECT_TRUE(found->has_left(1));
  host_memory::ticket wrong = made->where();
  wrong.mark[0] ^= 1;
  EXPECT_EQ(host_memory::find(wrong), nullptr);
  wrong = made->where();
  wrong.roll = wrong.memory;
  EXPECT_EQ(host_memory::find(wrong), nullptr);
  wrong.process = 0;
  EXPECT_EQ(host_memory::find(wrong), nullptr);
}

}  // namespace
