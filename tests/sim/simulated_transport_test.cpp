// SPDX-License-Identifier: Apache-2.0
// The promises of every transport (net/transport.hpp), kept between simulated nodes, which have one
// thread: tests/net/transport_suite.hpp needs those of a node.
#include "sim/simulated_transport.hpp"

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support.hpp"

namespace strata::test {
namespace {

using net::node_id;
using net::send_outcome;
using sim::simulated_transport;

// A node that sends numbers, and takes in what comes when it is told to.
class wired_node final : public simulated_transport::hands, public net::receiver {
 public:
  wired_node(sim::wires& w, node_id self) : in_(w.in), self_(self), way(w, self, *this) {}

  [[nodiscard]] std::int64_t departs_ns() override { return in_.now_ns(); }
  [[nodiscard]] bool shares_network_with(const simulated_transport&, node_id n) const override {
    return n < 3;
  }
  void on_arrival(simulated_transport& t) override {
    while (!is_busy && t.poll(*this, 64) != 0) {
    }
  }
  void on_room(simulated_transport&) override {
    ++rooms;
    if (when_room) when_room();
  }
  void on_message(const net::header& h, std::span<const std::byte> payload) override {
    std::uint32_t number = 0;
    ASSERT_GE(payload.size(), sizeof number);
    std::memcpy(&number, payload.data(), sizeof number);
    EXPECT_EQ(number, got++) << "from " << h.source;
    EXPECT_EQ(h.destination, self_);
  }
  void on_lost(node_id peer, const std::string& why) override {
    losses.push_back(std::to_string(peer) + " " + why);
  }

  send_outcome send(node_id to, std::uint32_t number, std::size_t bytes) {
    std::vector<std::byte> payload(bytes);
    std::memcpy(payload.data(), &number, sizeof number);
    net::header h{};
    h.kind = 1;
    h.source = self_;
    h.destination = to;
    return way.try_send(to, h, std::span(payload).first(2), std::span(payload).subspan(2));
  }

 private:
  sim::world& in_;
  const node_id self_;

 public:
  bool is_busy = false;
  std::uint32_t got = 0;
  unsigned rooms = 0;
  std::function<void()> when_room;
  std::vector<std::string> losses;
  simulated_transport way;
};

constexpr sim::network_model lossy_wires{.jitter_ns = 30'000, .loss = 0.1, .duplication = 0.1};

struct pair_of_ends {
  explicit pair_of_ends(const sim::network_model& network, std::uint64_t seed,
                        const sim::wires::settings& s = {})
      : world(network, seed), wires(world, s), first(wires, 0), second(wires, 1) {}
  void let_pass_until(std::int64_t ns) {
    world.run([] { return false; }, ns);
  }
  void let_pass() { let_pass_until(world.now_ns() + 100'000'000'000); }
  sim::world world;
  sim::wires wires;
  wired_node first, second;
};

TEST(simulated_transport, a_refused_sender_hears_of_room_and_loses_nothing) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    pair_of_ends p(lossy_wires, seed, {.credits_bytes = 4096});
    EXPECT_FALSE(p.first.way.reaches(0));
    EXPECT_TRUE(p.first.way.reaches(1));
    EXPECT_FALSE(p.first.way.reaches(3));
    p.second.is_busy = true;
    std::uint32_t sent = 0;
    const auto send_all = [&] {
      while (sent < 500 && p.first.send(1, sent, 100 + sent) != send_outcome::would_block) ++sent;
    };
    p.first.when_room = send_all;
    send_all();
    EXPECT_LT(sent, 40U);
    p.let_pass();
    EXPECT_LT(sent, 40U) << "nobody has taken anything in";
    p.second.is_busy = false;
    p.second.on_arrival(p.second.way);
    p.let_pass();
    EXPECT_EQ(sent, 500U);
    EXPECT_EQ(p.second.got, 500U);
    EXPECT_GT(p.first.rooms, 1U);
    EXPECT_LE(p.first.way.most_under_way(), 4096U + 600U + sizeof(net::header));
    EXPECT_EQ(p.first.way.counted().messages_out, p.second.way.counted().messages_in);
    EXPECT_EQ(p.first.way.counted().bytes_out, p.second.way.counted().bytes_in);
  }
}

// What is staged leaves with the next message, with a flush, or when somebody comes to flush it.
TEST(simulated_transport, what_is_staged_leaves_in_one_packet) {
  pair_of_ends p({}, 1, {.staged_ns = 10'000});
  EXPECT_EQ(p.first.send(1, 0, 64), send_outcome::sent);
  for (std::uint32_t i = 1; i < 10; ++i) EXPECT_EQ(p.first.send(1, i, 64), send_outcome::staged);
  p.let_pass_until(9'999);
  EXPECT_EQ(p.second.got, 1U);
  EXPECT_EQ(p.first.rooms, 0U);
  p.let_pass_until(10'000);
  EXPECT_GT(p.first.rooms, 0U) << "nobody is told to flush";
  EXPECT_TRUE(p.first.way.flush(1));
  p.let_pass();
  EXPECT_EQ(p.second.got, 10U);
  EXPECT_EQ(p.first.way.counted().writes, 2U);
}

TEST(simulated_transport, tells_of_an_end_once_and_behind_all_that_has_come) {
  pair_of_ends p({}, 1);
  p.second.is_busy = true;
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(p.first.send(1, i, 64), send_outcome::sent);
  p.let_pass();
  p.second.way.lose(0, "closed the connection");
  p.second.way.lose(0, "again");
  EXPECT_EQ(p.first.send(1, 5, 64), send_outcome::sent) << "nobody has told this end";
  EXPECT_EQ(p.second.send(0, 0, 64), send_outcome::lost);
  p.let_pass();
  EXPECT_TRUE(p.second.losses.empty());
  p.second.is_busy = false;
  p.second.on_arrival(p.second.way);
  p.let_pass();
  EXPECT_EQ(p.second.got, 5U);
  EXPECT_EQ(p.second.losses, std::vector<std::string>{"0 closed the connection"});
}

TEST(simulated_transport, hands_nothing_over_from_who_was_dropped) {
  pair_of_ends p({}, 1, {.credits_bytes = 200});
  p.second.is_busy = true;
  while (p.first.send(1, 0, 64) != send_outcome::would_block) {
  }
  p.let_pass();
  p.second.way.drop(0);
  p.second.is_busy = false;
  p.second.on_arrival(p.second.way);
  EXPECT_EQ(p.second.got, 0U);
  EXPECT_TRUE(p.second.losses.empty());
  // Who was refused hears that there is nobody to wait for.
  p.first.way.drop(1);
  p.let_pass();
  EXPECT_EQ(p.first.rooms, 1U);
  EXPECT_EQ(p.first.send(1, 0, 64), send_outcome::lost);
}

TEST(simulated_transport, refuses_who_speaks_in_the_name_of_another) {
  pair_of_ends p({}, 1);
  net::header h{};
  h.source = 2;
  h.destination = 1;
  EXPECT_EQ(p.first.way.try_send(1, h, {}, {}), send_outcome::sent);
  p.let_pass();
  EXPECT_EQ(p.second.got, 0U);
  EXPECT_EQ(p.second.losses, std::vector<std::string>{"0 sent a malformed header"});
}

TEST(simulated_transport, says_nothing_of_a_node_that_crashes) {
  pair_of_ends p(lossy_wires, 1);
  for (std::uint32_t i = 0; i < 50; ++i) EXPECT_EQ(p.first.send(1, i, 64), send_outcome::sent);
  p.let_pass_until(20'000);
  p.first.way.crash();
  const std::uint32_t before = p.second.got;
  p.let_pass();
  EXPECT_EQ(p.second.got, before) << "of a node that is not there any more";
  EXPECT_TRUE(p.second.losses.empty());
}

}  // namespace
}  // namespace strata::test
