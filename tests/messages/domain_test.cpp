// SPDX-License-Identifier: Apache-2.0
// Domains within one process; of many nodes in tests/sim.
#include "strata/domain.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "../sched/support.hpp"
#include "strata/message.hpp"
#include "strata/thread.hpp"

namespace strata {
namespace {

using test::with_workers;

TEST(domains, have_members_that_are_endpoints) {
  runtime rt(with_workers(1));
  rt.run([] {
    domain d;
    endpoint a, b;
    EXPECT_EQ(d.join(a.id()), 0U);
    EXPECT_EQ(d.join(b.id()), 1U);
    EXPECT_THROW((void)d.join(endpoint_id()), misuse_error);
    EXPECT_THROW((void)d.join(any_endpoint_on(0)), misuse_error);
    EXPECT_FALSE(d.leave(endpoint_id()));
    EXPECT_TRUE(d.leave(a.id()));
    EXPECT_FALSE(d.leave(endpoint_id()));  // though a rank is free
    EXPECT_EQ(d.size(), 1U);
    EXPECT_EQ(d.join(a.id()), 0U);
  });
}

TEST(domains, tell_their_members_from_any_rank_on) {
  runtime rt(with_workers(1));
  rt.run([] {
    domain d;
    std::vector<endpoint> ends(domain::page::length + 2);
    for (const endpoint& e : ends) (void)d.join(e.id());
    const auto ranks = static_cast<std::uint32_t>(ends.size());
    EXPECT_EQ(d.members_from(1).ranks, ranks);
    EXPECT_EQ(d.members_from(1).members.front(), ends[1].id());
    EXPECT_EQ(d.members_from(1).members.back(), ends[domain::page::length].id());
    EXPECT_EQ(d.members_from(ranks - 1).members[0], ends.back().id());
    // Beyond the last one, as near to the end of the numbers as can be.
    for (const std::uint32_t rank : {ranks, ranks + 1, UINT32_MAX - 1, UINT32_MAX}) {
      EXPECT_EQ(d.members_from(rank).ranks, ranks);
      for (const endpoint_id e : d.members_from(rank).members) EXPECT_FALSE(e) << rank;
    }
  });
}

TEST(domains, give_the_lowest_rank_that_is_free) {
  runtime rt(with_workers(1));
  rt.run([] {
    domain d;
    std::vector<endpoint> ends(8);
    for (unsigned i = 0; i < 6; ++i) EXPECT_EQ(d.join(ends[i].id()), i);
    for (const unsigned i : {4U, 1U, 3U}) EXPECT_TRUE(d.leave(ends[i].id()));
    EXPECT_EQ(d.join(ends[0].id()), 0U);
    EXPECT_EQ(d.join(ends[6].id()), 1U);
    EXPECT_TRUE(d.leave(ends[5].id()));
    EXPECT_EQ(d.members_from(0).ranks, 3U) << "the last ranks are free";
    EXPECT_EQ(d.join(ends[7].id()), 3U);
    EXPECT_EQ(d.join(ends[5].id()), 4U);
    EXPECT_EQ(d.size(), 5U);
    EXPECT_TRUE(d.leave(ends[0].id()));
    EXPECT_TRUE(d.leave(ends[6].id()));
    EXPECT_EQ(d.join(ends[4].id()), 0U);
    EXPECT_EQ(d.join(ends[3].id()), 1U);
  });
}

// Whoever waits suspends once, and not as often as others join.
TEST(domains, wake_those_alone_for_whom_there_are_enough) {
  static constexpr unsigned members = 200, waiting = 20;
  runtime rt(with_workers(1));
  const auto suspensions = [&] { return rt.stats().total().suspensions; };
  const std::uint64_t before = suspensions();
  rt.run([] {
    domain d;
    std::vector<endpoint> ends(members);
    std::vector<thread> all;
    unsigned told = 0;
    // For the last one, the last but one, and so on.
    for (unsigned i = 0; i < waiting; ++i) {
      all.emplace_back([&d, &told, i] {
        d.await_size(members - i);
        EXPECT_GE(d.size(), members - i);
        ++told;
      });
    }
    for (const endpoint& e : ends) {
      this_thread::yield();  // those who are woken go on
      const std::uint32_t rank = d.join(e.id());
      EXPECT_LE(told, rank > members - waiting ? rank - (members - waiting) : 0U);
    }
    for (thread& t : all) t.join();
    EXPECT_EQ(told, waiting);
  });
  // A yield may be one.
  EXPECT_LE(suspensions() - before, 2 * members);
}

}  // namespace
}  // namespace strata
