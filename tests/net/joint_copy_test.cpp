// SPDX-License-Identifier: Apache-2.0
// Where two nodes of a host agree who copies what: between transports of one process, which see
// each other's memory as those of several do.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "net/shm/shm_transport.hpp"

namespace {

using namespace strata::net;
using strata::net::shm::shm_transport;
using copy_type = joint_copies::copy;
constexpr unsigned none = copy_type::none;

TEST(joint_copies, belong_to_one_node_and_are_seen_by_the_others) {
  const int memory = ::memfd_create("joint_copy_test", MFD_CLOEXEC);
  const auto node = [memory](node_id self) {
    strata::net::shm::settings s;
    s.memory = memory;
    s.self = self;
    s.nodes = {0, 1};
    s.ring_bytes = std::size_t{64} << 10;
    return std::make_unique<shm_transport>(s);
  };
  const auto owner = node(0), helper = node(1);
  copy_type* const own = owner->copies_of(0);
  copy_type* const same = helper->copies_of(0);
  ASSERT_NE(own, nullptr);
  ASSERT_NE(same, nullptr);
  for (unsigned i = 0; i < joint_copies::copies_each; ++i) {
    const auto turn = own[i].open();
    EXPECT_EQ(same[i].begin(turn, 2), 1u);
    EXPECT_FALSE(own[i].is_alone());
  }
  EXPECT_NE(helper->copies_of(1), same);
  EXPECT_TRUE(helper->copies_of(1)->is_alone());
  EXPECT_EQ(helper->copies_of(7), nullptr);
  EXPECT_FALSE(helper->is_attended(0));
  owner->attended();
  EXPECT_TRUE(helper->is_attended(0));
  (void)owner->unattended();
  EXPECT_FALSE(helper->is_attended(0));
  EXPECT_FALSE(helper->is_attended(7));
  ::close(memory);
}

TEST(joint_copy, is_made_from_both_ends_until_they_meet) {
  copy_type c;
  const auto turn = c.open();
  EXPECT_EQ(c.claim(5), 0u);
  EXPECT_EQ(c.begin(turn, 5), 4u);
  EXPECT_EQ(c.begin(turn, 5), none);  // one is at work
  EXPECT_EQ(c.another(turn, 5), 3u);
  EXPECT_EQ(c.claim(5), 1u);
  EXPECT_EQ(c.claim(5), 2u);
  EXPECT_EQ(c.claim(5), none);
  EXPECT_EQ(c.another(turn, 5), none);
  EXPECT_FALSE(c.is_alone());
  EXPECT_EQ(c.left_over(5), 3u);  // as if it were lost now
  c.done(turn, true);
  EXPECT_TRUE(c.is_alone());
  EXPECT_EQ(c.left_over(5), none);
}

TEST(joint_copy, goes_on_without_a_helper_that_fails) {
  copy_type c;
  const auto turn = c.open();
  EXPECT_EQ(c.begin(turn, 3), 2u);
  c.done(turn, false);
  EXPECT_EQ(c.begin(turn, 3), none);
  EXPECT_EQ(c.another(turn, 3), none);
  EXPECT_EQ(c.claim(3), 0u);
  EXPECT_EQ(c.claim(3), 1u);
  EXPECT_EQ(c.claim(3), none);
  EXPECT_TRUE(c.is_alone());
  EXPECT_EQ(c.left_over(3), 2u);
}

TEST(joint_copy, has_no_place_for_a_helper_of_the_turn_before) {
  copy_type c;
  const auto before = c.open();
  EXPECT_EQ(c.begin(before, 3), 2u);  // and is lost
  const auto turn = c.open();
  EXPECT_NE(turn, before);
  EXPECT_TRUE(c.is_alone());
  EXPECT_EQ(c.another(before, 3), none);
  EXPECT_EQ(c.begin(before, 3), none);
  EXPECT_EQ(c.begin(turn, 3), 2u);
  c.done(before, false);
  EXPECT_FALSE(c.is_alone());
  c.done(turn, true);
  EXPECT_EQ(c.left_over(3), none);
}

// Whoever helps may have been told of more pieces than there are.
TEST(joint_copy, leaves_over_no_piece_that_there_is_not) {
  copy_type c;
  const auto turn = c.open();
  for (unsigned p = c.begin(turn, 9); p != none; p = c.another(turn, 9)) {
  }
  c.done(turn, false);
  EXPECT_EQ(c.claim(3), none);
  EXPECT_LE(c.left_over(3), 3u);
}

}  // namespace
