// SPDX-License-Identifier: Apache-2.0
// The words of gateways to the sources of what waits there: each is said once, and the newest
// counts in whatever order they come.
#include "cluster/links/hold_words.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace strata::cluster {
namespace {

constexpr node_id a_gateway = 1, another = 2;

TEST(hold_words, are_said_once_for_each_flow) {
  words_told told;
  EXPECT_TRUE(told.release().empty());
  EXPECT_EQ(told.hold({0, 5}), 1U);
  EXPECT_EQ(told.hold({0, 5}), std::nullopt) << "it waits";
  EXPECT_EQ(told.hold({0, 6}), 1U);
  EXPECT_EQ(told.release(), (words_told::words{{{0, 5}, 2}, {{0, 6}, 2}}));
  EXPECT_TRUE(told.release().empty());
  EXPECT_EQ(told.hold({0, 5}), 3U);
}

TEST(hold_words, count_in_whatever_order_they_come) {
  words_heard heard;
  EXPECT_FALSE(heard.say_wait());
  EXPECT_TRUE(heard.hear(a_gateway, 2));
  EXPECT_FALSE(heard.hear(a_gateway, 1)) << "it may go on since";
  EXPECT_FALSE(heard.hear(a_gateway, 2));
  EXPECT_FALSE(heard.say_wait());
  EXPECT_TRUE(heard.hear(a_gateway, 3));
  EXPECT_TRUE(heard.say_wait());
}

TEST(hold_words, go_on_after_the_last_number_there_is) {
  words_told told;
  words_heard heard;
  for (unsigned i = 0; i < 70'000; ++i) {
    const std::optional<std::uint16_t> wait = told.hold({0, 5});
    ASSERT_TRUE(wait);
    ASSERT_TRUE(heard.hear(a_gateway, *wait));
    ASSERT_TRUE(heard.say_wait());
    ASSERT_TRUE(heard.hear(a_gateway, told.release().at(0).second));
    ASSERT_FALSE(heard.say_wait());
  }
}

TEST(hold_words, of_each_gateway_count_until_it_has_left) {
  words_heard heard;
  EXPECT_FALSE(heard.forget(a_gateway));
  heard.hear(a_gateway, 1);
  heard.hear(another, 1);
  heard.hear(another, 2);
  EXPECT_TRUE(heard.say_wait());
  EXPECT_TRUE(heard.forget(a_gateway));
  EXPECT_FALSE(heard.say_wait());
}

}  // namespace
}  // namespace strata::cluster
