// SPDX-License-Identifier: Apache-2.0
// Exactly once and in order, whatever the network does.
#include "net/reliable.hpp"

#include <cstring>
#include <memory>

#include "sim/world.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

using net::reliable_channel;

// Two nodes that talk through a simulated network.
struct pair_of_nodes {
  explicit pair_of_nodes(const sim::network_model& n, std::uint64_t seed) : world(n, seed) {
    for (int side : {0, 1}) {
      channel[side] = std::make_unique<reliable_channel>(
          reliable_channel::settings{},
          reliable_channel::hooks{
              [this, side](const reliable_channel::packet& p) {
                std::vector<std::byte> copy(p.payload.begin(), p.payload.end());
                world.carry(static_cast<net::node_id>(side), static_cast<net::node_id>(1 - side),
                            copy.size() + 16, world.now_ns(), [this, side, p, copy] {
                              auto arrived = p;
                              arrived.payload = copy;
                              channel[1 - side]->on_packet(arrived, world.now_ns());
                              watch(1 - side);
                            });
              },
              [this, side](std::span<const std::byte> m) {
                int value = 0;
                std::memcpy(&value, m.data(), sizeof(value));
                received[side].push_back(value);
              }});
    }
  }
  void watch(int side) {
    const std::int64_t next = channel[side]->on_time(world.now_ns());
    if (next >= timer[side]) return;
    timer[side] = next;
    world.at(next, [this, side] {
      timer[side] = INT64_MAX;
      watch(side);
    });
  }
  void send(int side, int value) {
    std::vector<std::byte> m(sizeof(value));
    std::memcpy(m.data(), &value, sizeof(value));
    channel[side]->send(std::move(m), world.now_ns());
    watch(side);
  }

  sim::world world;
  std::unique_ptr<reliable_channel> channel[2];
  std::int64_t timer[2] = {INT64_MAX, INT64_MAX};
  std::vector<int> received[2];
};

void expect_all_in_order(const std::vector<int>& received, int messages) {
  ASSERT_EQ(received.size(), static_cast<std::size_t>(messages));
  for (int i = 0; i < messages; ++i) ASSERT_EQ(received[static_cast<std::size_t>(i)], i);
}

TEST(reliable_channel, delivers_once_and_in_order_over_a_network_that_does_not) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    const sim::network_model bad{.jitter_ns = 50'000, .loss = 0.2, .duplication = 0.2};
    pair_of_nodes two(bad, seed);
    constexpr int messages = thread_sanitizer ? 2500 : 5000;  // several windows
    for (int i = 0; i < messages; ++i) {
      two.send(0, i);
      if (i % 3 == 0) two.send(1, i / 3);
    }
    two.world.run([&] { return two.channel[0]->is_clear() && two.channel[1]->is_clear(); });
    expect_all_in_order(two.received[1], messages);
    expect_all_in_order(two.received[0], (messages + 2) / 3);
  }
}

TEST(reliable_channel, goes_on_after_a_cut) {
  pair_of_nodes two({}, 1);
  two.world.cut(0, 1);
  for (int i = 0; i < 10; ++i) two.send(0, i);
  two.world.run([] { return false; }, 100'000'000);
  EXPECT_TRUE(two.received[1].empty());
  EXPECT_GT(two.channel[0]->repeats(), 1U);
  two.world.join(0, 1);
  two.world.run([&] { return two.channel[0]->is_clear(); });
  expect_all_in_order(two.received[1], 10);
}

TEST(reliable_channel, repeats_nothing_on_a_good_network) {
  pair_of_nodes two({}, 1);
  for (int i = 0; i < 100; ++i) two.send(0, i);
  two.world.run([&] { return two.channel[0]->is_clear(); });
  expect_all_in_order(two.received[1], 100);
  EXPECT_EQ(two.world.packets(), 200U);  // each message and its acknowledgement
}

TEST(reliable_channel, ignores_acknowledgements_of_what_was_never_sent) {
  pair_of_nodes two({}, 1);
  two.channel[0]->on_packet({0, 1000, false, {}}, 0);
  two.send(0, 0);
  two.world.run([&] { return two.channel[0]->is_clear(); });
  expect_all_in_order(two.received[1], 1);
}

}  // namespace
}  // namespace strata::test
