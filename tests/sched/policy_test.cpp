// SPDX-License-Identifier: Apache-2.0
// Who keeps what when many tasks become ready together, under the policies rotator and locked.
#include "sched/policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/prng.hpp"

namespace strata::detail {
namespace {

using counts = std::vector<std::size_t>;

TEST(policy, a_share_is_the_same_for_all_and_never_nothing) {
  EXPECT_EQ(share_of(0, 4), 1u);
  EXPECT_EQ(share_of(1, 4), 1u);
  EXPECT_EQ(share_of(8, 4), 2u);
  EXPECT_EQ(share_of(9, 4), 3u);
}

TEST(policy, nobody_moves_when_all_have_the_same) {
  EXPECT_EQ(keeps_of({128, 128}, {0, 0}, 0), (counts{128, 0}));
  EXPECT_EQ(keeps_of({128, 128}, {0, 0}, 1), (counts{0, 128}));
  EXPECT_EQ(keeps_of({5, 5, 5, 5}, {2, 2, 2, 2}, 2), (counts{0, 0, 5, 0}));
  // One more or less is the same.
  EXPECT_EQ(keeps_of({4, 3}, {0, 0}, 0), (counts{4, 0}));
  EXPECT_EQ(keeps_of({4, 3}, {0, 0}, 1), (counts{0, 3}));
  EXPECT_EQ(keeps_of({1, 0}, {0, 0}, 0), (counts{1, 0}));
  EXPECT_EQ(keeps_of({0, 1}, {0, 0}, 0), (counts{0, 0}));
}

TEST(policy, as_many_move_as_make_shares_equal) {
  EXPECT_EQ(keeps_of({100, 0}, {0, 0}, 0), (counts{50, 0}));
  EXPECT_EQ(keeps_of({100, 156}, {0, 0}, 0), (counts{100, 28}));
  EXPECT_EQ(keeps_of({100, 156}, {28, 0}, 0), (counts{100, 14}));
  EXPECT_EQ(keeps_of({10, 10}, {30, 0}, 0), (counts{0, 0}));
  EXPECT_EQ(keeps_of({0, 9, 9}, {0, 0, 0}, 0), (counts{0, 3, 3}));
}

TEST(policy, what_is_kept_is_there_and_never_more_than_the_share) {
  prng random(7);
  for (int round = 0; round < 2000; ++round) {
    const std::size_t workers = 1 + random.below(8);
    counts ran(workers);
    counts ready(workers);
    for (std::size_t i = 0; i < workers; ++i) {
      ran[i] = random.below(50);
      ready[i] = random.below(50);
    }
    const std::size_t here = random.below(workers);
    const std::size_t share =
        share_of(std::accumulate(ran.begin(), ran.end(), std::size_t{0}) +
                     std::accumulate(ready.begin(), ready.end(), std::size_t{0}),
                 workers);
    const counts keeps = keeps_of(ran, ready, here);
    std::size_t all = ready[here];
    for (std::size_t i = 0; i < workers; ++i) {
      EXPECT_LE(keeps[i], ran[i]);
      all += keeps[i];
    }
    EXPECT_LE(all, std::max(share, ready[here]));
  }
}

}  // namespace
}  // namespace strata::detail
