// SPDX-License-Identifier: Apache-2.0
// The promises of every transport, kept within a process.
#include <memory>
#include <thread>
#include <vector>

#include "net/inproc/inproc_transport.hpp"
#include "stand_in_suite.hpp"
#include "transport_suite.hpp"

namespace strata::net::test {
namespace {

std::vector<std::unique_ptr<transport>> make_inproc(node_id nodes, bool small_buffers) {
  const auto where = small_buffers ? std::make_shared<inproc::meeting>(nodes, std::size_t{16} << 10)
                                   : std::make_shared<inproc::meeting>(nodes);
  std::vector<std::unique_ptr<transport>> all;
  for (node_id n = 0; n < nodes; ++n)
    all.push_back(std::make_unique<inproc::inproc_transport>(where, n));
  return all;
}

INSTANTIATE_TEST_SUITE_P(inproc, transport_suite,
                         testing::Values(transport_maker{"inproc", make_inproc}), name_of);
INSTANTIATE_TEST_SUITE_P(inproc, stand_in_suite,
                         testing::Values(transport_maker{"inproc", make_inproc}), name_of);

TEST(inproc, nobody_is_there_before_it_comes) {
  const auto where = std::make_shared<inproc::meeting>(node_id{2});
  inproc::inproc_transport first(where, 0);
  EXPECT_FALSE(first.reaches(1));
  EXPECT_EQ(first.try_send(1, header_of(0, 1), {}, {}), send_outcome::lost);
  inproc::inproc_transport second(where, 1);
  EXPECT_TRUE(first.reaches(1));
  EXPECT_EQ(first.try_send(1, header_of(0, 1), content(0, 0, mixed_size(0)), {}),
            send_outcome::sent);
  checking_receiver r(1);
  r.receive(second, 1);
}

TEST(inproc, all_that_was_sent_comes_before_the_end) {
  const auto where = std::make_shared<inproc::meeting>(node_id{2});
  auto first = std::make_unique<inproc::inproc_transport>(where, node_id{0});
  inproc::inproc_transport second(where, 1);
  checking_receiver r(1, small_size);
  expect_all_before_the_end(first, second, r);
}

// What lies between two nodes is no more than the credits, or one message that is larger.
TEST(inproc, credits_bound_what_is_under_way) {
  constexpr std::size_t credits = 1000;
  const auto where = std::make_shared<inproc::meeting>(node_id{2}, credits);
  inproc::inproc_transport first(where, 0), second(where, 1);
  const auto send = [&](std::size_t m, std::size_t size) {
    return first.try_send(1, header_of(0, 1), content(0, m, size), {});
  };
  EXPECT_EQ(send(0, 5000), send_outcome::sent);
  EXPECT_EQ(send(1, 0), send_outcome::would_block);
  checking_receiver r(1, [](std::size_t m) { return m == 0 ? std::size_t{5000} : 484; });
  r.receive(second, 1);
  EXPECT_EQ(send(1, 484), send_outcome::sent);
  EXPECT_EQ(send(2, 484), send_outcome::sent);
  EXPECT_EQ(send(3, 0), send_outcome::would_block);
  r.receive(second, 2);
  EXPECT_EQ(send(3, 484), send_outcome::sent);
  // The room of before was told.
  sleep_for_room(first);
}

}  // namespace
}  // namespace strata::net::test
