// SPDX-License-Identifier: Apache-2.0
// Lanes to endpoints of other nodes: one for each, which is forgotten only after its end, and then
// not before many others have ended.
#include "messages/lane_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace strata::messages {
namespace {

endpoint_id endpoint_of(node_id_t node, std::uint64_t number) {
  return endpoint_id::from_bits(std::uint64_t{node} << 48 | number);
}

void append_to(lane& l, request& r) {
  const std::lock_guard lock(l.lock);
  r.at = request::place::lane;
  l.waiting.add(r);
}

TEST(lanes, there_is_one_to_each_endpoint) {
  lane_table all;
  const endpoint_id one = endpoint_of(1, 1), other = endpoint_of(1, 2);
  EXPECT_EQ(all.find(one), nullptr);
  const std::shared_ptr<lane> l = all.to(one);
  EXPECT_EQ(l->target, one);
  EXPECT_EQ(all.to(one), l);
  EXPECT_EQ(all.find(one), l);
  EXPECT_EQ(all.in_use(one), l);
  EXPECT_NE(all.in_use(other), l);
  EXPECT_EQ(all.in_use(one), l);
}

TEST(lanes, those_in_use_are_of_the_table_that_is_asked) {
  lane_table all, others;
  const endpoint_id one = endpoint_of(1, 1);
  const std::shared_ptr<lane> l = all.in_use(one);
  EXPECT_NE(others.in_use(one), l);
  EXPECT_EQ(all.in_use(one), l);
}

TEST(lanes, what_waits_is_handed_over_by_the_end) {
  lane_table all;
  const endpoint_id one = endpoint_of(1, 1), next = endpoint_of(1, 2), far = endpoint_of(2, 1);
  request first, second, third;
  append_to(*all.to(one), first);
  append_to(*all.to(one), second);
  append_to(*all.to(far), third);
  const match_list<request, 0> waited = all.end(one, outcome::announced);
  EXPECT_EQ(waited.first, &first);
  EXPECT_EQ(waited.last, &second);
  EXPECT_EQ(first.at, request::place::nowhere);
  EXPECT_EQ(all.to(one)->open, outcome::announced);

  (void)all.to(next);
  EXPECT_TRUE(all.end_all_to(1, outcome::closed).empty());
  EXPECT_EQ(all.to(next)->open, outcome::closed);
  EXPECT_EQ(all.to(far)->open, outcome::done) << "which is of another node";
  EXPECT_EQ(third.at, request::place::lane);
}

TEST(lanes, of_endpoints_that_were_never_sent_to_the_end_is_remembered) {
  lane_table all;
  EXPECT_TRUE(all.end(endpoint_of(1, 1), outcome::closed).empty());
  EXPECT_EQ(all.in_use(endpoint_of(1, 1))->open, outcome::closed);
}

// In whichever part of the table it lies, enough others end there.
TEST(lanes, are_forgotten_after_many_others_have_ended_and_count_on) {
  lane_table all;
  const endpoint_id one = endpoint_of(1, 1), open = endpoint_of(1, 2);
  const std::shared_ptr<lane> kept = all.in_use(one);
  kept->eager = 3;
  all.to(open)->eager = 4;
  const auto end = [&](endpoint_id e) { EXPECT_TRUE(all.end(e, outcome::closed).empty()); };
  end(one);
  // Told again, it is no younger, and takes no other one's place.
  for (std::uint64_t i = 0; i < 2 * lane_table::ended_max; ++i) end(one);
  EXPECT_EQ(all.find(one), kept);
  for (std::uint64_t i = 0; i < 32 * lane_table::ended_max; ++i) end(endpoint_of(2, i + 1));
  EXPECT_EQ(all.find(one), nullptr);
  EXPECT_EQ(kept->open, outcome::closed) << "for who has it still";
  EXPECT_NE(all.find(open), nullptr) << "which has not ended";
  EXPECT_NE(all.find(endpoint_of(2, 32 * lane_table::ended_max)), nullptr) << "the latest";
  EXPECT_EQ(all.eager(), 7);
}

}  // namespace
}  // namespace strata::messages
