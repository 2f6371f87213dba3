// SPDX-License-Identifier: Apache-2.0
// Which receive gets which message, against a search through plain lists.
#include "messages/matching.hpp"

#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <random>
#include <vector>

namespace {

using namespace strata;
using namespace strata::messages;

struct posted {
  match_links<posted> links[1];
  pattern wanted;
  std::uint64_t order = 0;
  int number = 0;
};
struct waiting {
  match_links<waiting> links[pattern_shapes];
  pattern sent_as;
  pattern from() const { return sent_as; }
  int number = 0;
};

bool fits(const pattern& wanted, const pattern& message) {
  return (!wanted.source || wanted.source == message.source) &&
         (wanted.tag == any_tag || wanted.tag == message.tag);
}

struct choice {
  std::mt19937_64 random{20};
  unsigned sources, tags;
  pattern message() {
    return {endpoint_id::from_bits(1 + random() % sources),
            static_cast<message_tag>(random() % tags)};
  }
  pattern wanted() {
    pattern p = message();
    if (random() % 3 == 0) p.source = {};
    if (random() % 3 == 0) p.tag = any_tag;
    return p;
  }
};

class matching : public testing::TestWithParam<unsigned> {};

TEST_P(matching, of_receives_takes_the_oldest_that_fits) {
  choice c{.sources = GetParam(), .tags = GetParam()};
  posted_receives<posted> table;
  std::list<std::unique_ptr<posted>> plain;
  int number = 0;
  for (int step = 0; step < 20'000; ++step) {
    // Grows for a while, then shrinks.
    const bool adds = c.random() % 100 < (step / 2'000 % 2 == 0 ? 65 : 35);
    if (adds) {
      plain.push_back(std::make_unique<posted>());
      plain.back()->wanted = c.wanted();
      plain.back()->number = ++number;
      table.add(*plain.back());
    } else if (c.random() % 5 == 0 && !plain.empty()) {
      auto any = plain.begin();
      std::advance(any, c.random() % plain.size());
      table.remove(**any);
      plain.erase(any);
    } else {
      const pattern m = c.message();
      const auto expected = std::find_if(plain.begin(), plain.end(),
                                         [&](const auto& p) { return fits(p->wanted, m); });
      const posted* const got = table.take(m);
      ASSERT_EQ(got, expected == plain.end() ? nullptr : expected->get()) << "step " << step;
      if (expected != plain.end()) plain.erase(expected);
    }
  }
}

TEST_P(matching, of_messages_finds_the_oldest_that_fits) {
  choice c{.sources = GetParam(), .tags = GetParam()};
  waiting_messages<waiting> table;
  std::list<std::unique_ptr<waiting>> plain;
  for (int step = 0; step < 20'000; ++step) {
    const bool adds = c.random() % 100 < (step / 2'000 % 2 == 0 ? 65 : 35);
    if (adds) {
      plain.push_back(std::make_unique<waiting>());
      plain.back()->sent_as = c.message();
      table.add(*plain.back());
    } else {
      const pattern p = c.wanted();
      const auto expected = std::find_if(plain.begin(), plain.end(),
                                         [&](const auto& m) { return fits(p, m->sent_as); });
      waiting* const got = table.find(p);
      ASSERT_EQ(got, expected == plain.end() ? nullptr : expected->get()) << "step " << step;
      if (got == nullptr) continue;
      table.remove(*got);
      plain.erase(expected);
    }
    ASSERT_EQ(table.size(), plain.size());
  }
}

INSTANTIATE_TEST_SUITE_P(how_many, matching, testing::Values(1U, 3U, 50U));

}  // namespace
