// SPDX-License-Identifier: Apache-2.0
// How much of what nodes write is under way between an agent and its launcher.
#include "tools/strata/nodes/output_window.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launch/frame.hpp"
#include "tools/strata/nodes/agent_messages.hpp"

namespace {

using namespace strata::launch;
using namespace strata::launcher;

class window : public testing::Test {
 protected:
  // What has been sent since this was asked last: of each node, how much, in order.
  std::vector<std::pair<node_id, std::size_t>> sent() {
    std::vector<std::pair<node_id, std::size_t>> all;
    while (const auto next = frames.next()) {
      const output_message message = unpack_output(next->payload);
      all.emplace_back(message.node, message.bytes.size());
    }
    return all;
  }
  using blocks = std::vector<std::pair<node_id, std::size_t>>;
  void add(node_id node, std::size_t bytes) {
    output.add(node, output_stream::out, std::string(bytes, 'x'));
  }

  static constexpr std::size_t half = output_window_bytes / 2;
  frame_reader frames;
  output_window output{[this](const std::string& frame_bytes) { frames.add(frame_bytes); }};
};

TEST_F(window, what_does_not_fit_is_held_until_there_is_room) {
  add(1, half);
  add(1, half);
  EXPECT_FALSE(output.is_full());
  add(1, 5);
  add(2, 6);
  EXPECT_TRUE(output.is_full());
  EXPECT_EQ(sent(), (blocks{{1, half}, {1, half}}));
  output.taken(half);
  EXPECT_FALSE(output.is_full());
  EXPECT_EQ(sent(), (blocks{{1, 5}, {2, 6}}));
}

TEST_F(window, what_comes_later_does_not_overtake) {
  add(1, 2 * half);
  add(1, 2 * half);
  output.taken(half);
  add(2, 1);
  EXPECT_EQ(sent(), (blocks{{1, 2 * half}, {1, 2 * half}}));
  output.taken(half);
  EXPECT_EQ(sent(), blocks());
  output.taken(half);
  EXPECT_EQ(sent(), (blocks{{2, 1}}));
}

// The end of a node waits for no reader, and comes behind what the node wrote.
TEST_F(window, what_a_node_that_has_ended_wrote_waits_for_no_room) {
  add(1, 2 * half);
  add(1, 3);
  add(2, 4);
  add(1, 5);
  (void)sent();
  output.finish(1);
  EXPECT_EQ(sent(), (blocks{{1, 3}, {1, 5}}));
  EXPECT_TRUE(output.is_full());
  output.finish(2);
  EXPECT_EQ(sent(), (blocks{{2, 4}}));
  EXPECT_FALSE(output.is_full());
}

TEST_F(window, a_launcher_that_takes_what_it_was_not_given_does_no_harm) {
  output.taken(half);
  add(1, 2 * half);
  add(1, 1);
  EXPECT_TRUE(output.is_full());
}

TEST(receipt, is_given_in_parts_and_not_while_there_is_no_room) {
  std::size_t told = 0;
  output_receipt receipt([&](std::size_t bytes) { told += bytes; });
  constexpr std::size_t part = output_window_bytes / 4;
  receipt.received(part - 1);
  EXPECT_EQ(told, 0U);
  receipt.received(1);
  EXPECT_EQ(told, part);
  receipt.pause(true);
  receipt.received(3 * part);
  EXPECT_EQ(told, part);
  receipt.pause(false);
  EXPECT_EQ(told, 4 * part);
}

}  // namespace
