// SPDX-License-Identifier: Apache-2.0
#include "messages/directory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>

#include "cluster/words/codec.hpp"

namespace strata::messages {
namespace {

detail::published_value value_of(std::uint64_t publication) {
  detail::published_value v;
  v.found = true;
  v.publication = publication;
  return v;
}

bool nobody_has_left(net::node_id) { return true; }

// Who publishes asks again when the name's home left before it answered; the name may have been
// entered, and handed on.
TEST(directory, a_publication_may_be_entered_again_and_another_one_not) {
  directory d;
  EXPECT_EQ(d.enter("name", value_of(7)), 7U);
  EXPECT_EQ(d.enter("name", value_of(7)), 7U);
  EXPECT_EQ(d.enter("name", value_of(8)), 7U);
  std::set<net::node_id> remembered_by;
  EXPECT_EQ(d.begin_to_withdraw("name", 0, remembered_by), 7U);
  EXPECT_EQ(d.begin_to_withdraw("name", 0, remembered_by), 0U);
  EXPECT_FALSE(d.give("name", 3, false).found);
  d.end_withdrawal("name", 7);
  EXPECT_EQ(d.enter("name", value_of(8)), 8U);
}

// Who withdraws what it has published may come late: the name may have been withdrawn by others,
// and be somebody else's.
TEST(directory, withdraws_one_publication_and_no_other) {
  directory d;
  EXPECT_EQ(d.enter("name", value_of(8)), 8U);
  EXPECT_TRUE(d.give("name", 3, false).found);
  std::set<net::node_id> remembered_by;
  EXPECT_EQ(d.begin_to_withdraw("name", 7, remembered_by), 0U);
  EXPECT_TRUE(d.give("name", 4, false).found);
  EXPECT_EQ(d.begin_to_withdraw("name", 8, remembered_by), 8U);
  EXPECT_EQ(remembered_by, (std::set<net::node_id>{3, 4}));
  EXPECT_FALSE(d.give("name", 3, false).found);
}

TEST(directory, hands_on_which_publication_a_name_is_of) {
  directory leaver, heir;
  EXPECT_EQ(leaver.enter("name", value_of(7)), 7U);
  for (const auto& piece : leaver.pack(65536)) heir.inherit(piece, 1, nobody_has_left);
  EXPECT_EQ(heir.enter("name", value_of(7)), 7U);
  EXPECT_EQ(heir.enter("name", value_of(8)), 7U);
}

TEST(directory, forgets_what_a_leaver_has_published) {
  directory d;
  std::uint64_t epoch = 0;
  for (const net::node_id n : std::array<net::node_id, 2>{1, 2}) {
    const std::string name = "of node " + std::to_string(n);
    EXPECT_EQ(directory::publisher_of(d.new_publication(n)), n);
    (void)d.enter(name, value_of(d.new_publication(n)));
    EXPECT_FALSE(d.recall(name, epoch).found);
    d.remember(name, d.give(name, 0, false), epoch);
    EXPECT_TRUE(d.recall(name, epoch).found);
  }
  // Somebody is just being told what it has asked for.
  const auto late = d.give("of node 1", 0, false);
  d.forget_those_of(1);
  EXPECT_FALSE(d.give("of node 1", 0, false).found);
  EXPECT_TRUE(d.give("of node 2", 0, false).found);
  d.remember("of node 1", late, epoch);
  EXPECT_FALSE(d.recall("of node 1", epoch).found);
  EXPECT_TRUE(d.recall("of node 2", epoch).found);
  // The name is free.
  const std::uint64_t of_2 = d.new_publication(2);
  EXPECT_EQ(d.enter("of node 1", value_of(of_2)), of_2);
}

TEST(directory, does_not_inherit_what_a_leaver_has_published) {
  directory leaver, heir;
  for (const net::node_id n : std::array<net::node_id, 2>{1, 2})
    (void)leaver.enter("of node " + std::to_string(n), value_of(leaver.new_publication(n)));
  const auto pieces = leaver.pack(65536);
  for (const auto& piece : pieces) heir.inherit(piece, 3, [](net::node_id n) { return n != 1; });
  EXPECT_FALSE(heir.give("of node 1", 0, false).found);
  EXPECT_TRUE(heir.give("of node 2", 0, false).found);
  for (const auto& piece : pieces)
    EXPECT_THROW(heir.inherit(piece, 2, nobody_has_left), cluster::malformed);
}

}  // namespace
}  // namespace strata::messages
