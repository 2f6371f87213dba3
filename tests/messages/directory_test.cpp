// SPDX-License-Identifier: Apache-2.0
#include "messages/directory.hpp"

#include <gtest/gtest.h>

#include <set>

namespace strata::messages {
namespace {

detail::published_value value_of(std::uint64_t publication) {
  detail::published_value v;
  v.found = true;
  v.publication = publication;
  return v;
}

// Who publishes asks again when the name's home left before it answered; the name may have been
// entered, and handed on.
TEST(directory, a_publication_may_be_entered_again_and_another_one_not) {
  directory d;
  EXPECT_TRUE(d.enter("name", value_of(7)));
  EXPECT_TRUE(d.enter("name", value_of(7)));
  EXPECT_FALSE(d.enter("name", value_of(8)));
  std::set<net::node_id> remembered_by;
  EXPECT_TRUE(d.remove("name", remembered_by));
  EXPECT_FALSE(d.remove("name", remembered_by));
  EXPECT_TRUE(d.enter("name", value_of(8)));
}

TEST(directory, hands_on_which_publication_a_name_is_of) {
  directory leaver, heir;
  EXPECT_TRUE(leaver.enter("name", value_of(7)));
  for (const auto& piece : leaver.pack(65536)) heir.inherit(piece, 1);
  EXPECT_TRUE(heir.enter("name", value_of(7)));
  EXPECT_FALSE(heir.enter("name", value_of(8)));
}

}  // namespace
}  // namespace strata::messages
