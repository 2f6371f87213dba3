// SPDX-License-Identifier: Apache-2.0
// Sums of floating-point numbers by groups on simulated nodes: whatever the network does, and
// wherever the members are, the same bits come out; of all_reduce() at every member.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "program_job.hpp"
#include "strata/group.hpp"

namespace strata::test {
namespace {

using net::node_id;

// Of magnitudes from 1e-8 to 1e8 and either sign, so that each order of additions has its own bits.
std::vector<double> terms_of(unsigned rank, std::size_t n) {
  prng random(rank + 1);
  std::vector<double> all(n);
  for (double& x : all) {
    const double fraction = 1 + random.unit();
    x = std::ldexp(random.below(2) == 0 ? fraction : -fraction,
                   static_cast<int>(random.below(53)) - 26);
  }
  return all;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

// By member: what each operation has left there, one after the other.
using results = std::vector<std::vector<double>>;

// The members of one group, by turns on the nodes.
results add_up(std::uint64_t seed, node_id nodes, unsigned members, std::size_t n) {
  program_job p(seed, {.nodes = nodes});
  std::vector<endpoint_id> ids(members);
  results left(members);
  for (unsigned rank = 0; rank < members; ++rank) {
    p.begin(static_cast<node_id>(rank % nodes), [&, rank] {
      endpoint mine;
      ids[rank] = mine.id();
      while (std::count(ids.begin(), ids.end(), endpoint_id()) != 0) p.pause(50'000);
      group all(mine, ids);
      const auto keep = [&](const std::vector<double>& of_one) {
        left[rank].insert(left[rank].end(), of_one.begin(), of_one.end());
      };
      const std::vector<double> terms = terms_of(rank, n);
      std::vector<double> sums = terms;
      if (p.below(2) == 0) p.pause(300'000);
      all.all_reduce(sums, std::plus<>());
      keep(sums);
      sums = terms;
      all.scan(sums, std::plus<>());
      keep(sums);
      std::vector<double> block(n / members);
      all.reduce_scatter(std::span(terms).first(block.size() * members), block, std::plus<>());
      keep(block);
      for (unsigned root = 0; root < members; ++root) {
        if (p.below(2) == 0) p.pause(300'000);
        all.reduce(terms, sums, root, std::plus<>());
        if (rank == root) keep(sums);
      }
      keep({all.all_reduce(terms[0], std::plus<>())});
    });
  }
  p.run();
  return left;
}

// Else that comparison would say nothing.
void expect_order_shows(unsigned members, std::size_t n) {
  std::vector<double> forwards = terms_of(0, n), backwards = terms_of(members - 1, n);
  for (unsigned i = 1; i < members; ++i) {
    const std::vector<double> next = terms_of(i, n), last = terms_of(members - 1 - i, n);
    for (std::size_t k = 0; k < n; ++k) {
      forwards[k] += next[k];
      backwards[k] += last[k];
    }
  }
  EXPECT_FALSE(same_bits(forwards, backwards));
}

TEST(simulated_groups, add_up_to_the_same_bits_every_time) {
  struct run {
    unsigned members;
    std::size_t n;
    results sums{};
  };
  std::vector<run> once;
  // 16 KiB are 2048 numbers; from there on all_reduce() goes another way.
  for (const std::size_t n : {std::size_t{100}, std::size_t{2047}, std::size_t{5001}}) {
    for (const unsigned members : {3U, 5U, 7U}) {
      once.push_back({members, n, add_up(1, static_cast<node_id>(members), members, n)});
      const results& sums = once.back().sums;
      for (unsigned rank = 0; rank < members; ++rank) {
        SCOPED_TRACE(std::to_string(n) + " numbers at member " + std::to_string(rank));
        ASSERT_EQ(sums[rank].size(), 3 * n + n / members + 1);
        EXPECT_EQ(std::memcmp(sums[rank].data(), sums[0].data(), n * sizeof(double)), 0);
        EXPECT_EQ(std::memcmp(&sums[rank].back(), &sums[0].back(), sizeof(double)), 0);
      }
      expect_order_shows(members, n);
    }
  }
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const run& r : once) {
      const std::array<node_id, 3> nodes{static_cast<node_id>(r.members), 2, 1};
      const results again = add_up(seed, nodes[seed % nodes.size()], r.members, r.n);
      for (unsigned rank = 0; rank < r.members; ++rank) {
        EXPECT_TRUE(same_bits(again[rank], r.sums[rank]))
            << r.n << " numbers at member " << rank << " of " << r.members;
      }
    }
  }
}

}  // namespace
}  // namespace strata::test
