// SPDX-License-Identifier: Apache-2.0
// Domains within one process; of many nodes in tests/sim.
#include "strata/domain.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "../sched/support.hpp"
#include "strata/message.hpp"

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

}  // namespace
}  // namespace strata
