// SPDX-License-Identifier: Apache-2.0
#include "messages/fetch_choice.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace strata::messages {
namespace {

constexpr std::size_t fetched_bytes = std::size_t{128} << 10;

// So many are under way at a time. Pieces take 1000 ticks for each message, one behind the other;
// those that are read come together, after so many ticks for each. Returns how many were read.
unsigned reads_of(unsigned rounds, unsigned under_way, std::uint64_t each_read) {
  fetch_choice c;
  std::uint64_t now = 1;
  unsigned reads = 0;
  for (unsigned i = 0; i < rounds; ++i) {
    std::vector<fetch_choice::started> all;
    while (all.size() < under_way) all.push_back(c.start(fetched_bytes, now));
    unsigned read_here = 0;
    for (const auto& s : all) {
      if (s.reads()) {
        ++read_here;
      } else {
        c.done(s, fetched_bytes, now += 1000);
      }
    }
    now += read_here * each_read;
    for (const auto& s : all) {
      if (s.reads()) c.done(s, fetched_bytes, now);
    }
    reads += read_here;
  }
  return reads;
}

TEST(fetch_choice, of_messages_that_are_read_together_is_by_what_all_take) {
  constexpr unsigned rounds = 20'000;
  for (const unsigned under_way : {1, 2, 3, 4, 8}) {
    EXPECT_LT(reads_of(rounds, under_way, 2000), rounds * under_way / 10) << under_way;
    EXPECT_GT(reads_of(rounds, under_way, 400), rounds * under_way / 10 * 9) << under_way;
  }
}

}  // namespace
}  // namespace strata::messages
