// SPDX-License-Identifier: Apache-2.0
// A peer that has joined and then sends nonsense loses its connection, and nothing else happens.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <random>

#include "net/tcp/tcp_transport.hpp"
#include "tcp_pair.hpp"
#include "transport_support.hpp"

namespace strata::net::test {
namespace {

using tcp::tcp_transport;

// Node 0 with node 1, who is well-behaved, and node 2, whose socket the test holds.
class tcp_hostile : public testing::Test {
 protected:
  tcp_hostile() {
    auto net = tcp_net(3);
    hostile_ = std::move(net[2][0]);
    net[0][0].reset();
    net[1][2].reset();
    node0_ = std::make_unique<tcp_transport>(node_id{0}, std::move(net[0]), tcp::options{});
    node1_ = std::make_unique<tcp_transport>(node_id{1}, std::move(net[1]), tcp::options{});
  }

  void say(const void* bytes, std::size_t count) {
    const auto* from = static_cast<const char*>(bytes);
    while (count > 0) {
      const ssize_t n = ::send(hostile_.get(), from, count, MSG_NOSIGNAL);
      if (n < 0) return;  // we have been cut off, or have said enough
      from += n;
      count -= static_cast<std::size_t>(n);
    }
  }
  void say(const header& h) { say(&h, sizeof h); }

  // Node 0 reports node 2 lost, once; node 1 still gets through. Returns what was said of node 2.
  std::string verdict() {
    r_.receive_until(*node0_, [&] { return !r_.lost.empty(); });
    EXPECT_EQ(r_.lost.size(), 1u);
    EXPECT_EQ(r_.lost[2].size(), 1u);
    EXPECT_EQ(node0_->try_send(2, header_of(0, 2), {}, {}), send_outcome::lost);
    send_patiently(*node1_, 1, 0, content(1, 0, mixed_size(0)));
    r_.receive_until(*node0_, [&] { return r_.received[1] == 1; });
    EXPECT_EQ(r_.lost[2].size(), 1u);
    return r_.lost[2].empty() ? "" : r_.lost[2][0];
  }

  os::descriptor hostile_;
  std::unique_ptr<tcp_transport> node0_;
  std::unique_ptr<tcp_transport> node1_;
  checking_receiver r_{0};
};

TEST_F(tcp_hostile, a_length_beyond_the_limit) {
  header h = header_of(2, 0);
  h.length = 0xFFFF'FFFF;
  say(h);
  EXPECT_EQ(verdict(), "sent a header with a length of 4294967295");
}

TEST_F(tcp_hostile, a_length_just_beyond_the_limit) {
  header h = header_of(2, 0);
  h.length = payload_bytes_max + 1;
  say(h);
  EXPECT_EQ(verdict(), "sent a header with a length of " + std::to_string(payload_bytes_max + 1));
}

TEST_F(tcp_hostile, the_name_of_another) {
  say(header_of(1, 0));
  EXPECT_EQ(verdict(), "sent a message in the name of node 1");
}

TEST_F(tcp_hostile, a_message_for_another) {
  say(header_of(2, 1));
  EXPECT_EQ(verdict(), "sent a message for node 1");
}

TEST_F(tcp_hostile, a_gap_in_the_sequence) {
  header h = header_of(2, 0);
  h.sequence = 7;
  say(h);
  EXPECT_EQ(verdict(), "sent message 7 where 0 was due");
}

TEST_F(tcp_hostile, the_same_message_twice) {
  header h = header_of(2, 0);
  const auto bytes = content(2, 0, mixed_size(0));
  h.length = static_cast<std::uint32_t>(bytes.size());
  for (int i = 0; i < 2; ++i) {
    say(h);
    say(bytes.data(), bytes.size());
  }
  EXPECT_EQ(verdict(), "sent message 0 where 1 was due");
  EXPECT_EQ(r_.received[2], 1u);
}

TEST_F(tcp_hostile, half_a_header) {
  const header h = header_of(2, 0);
  say(&h, 7);
  hostile_.reset();
  EXPECT_EQ(verdict(), "closed the connection in the middle of a message");
}

TEST_F(tcp_hostile, half_a_payload) {
  header h = header_of(2, 0);
  h.length = 1000;
  say(h);
  say(std::vector<char>(500).data(), 500);
  hostile_.reset();
  EXPECT_EQ(verdict(), "closed the connection in the middle of a message");
}

TEST_F(tcp_hostile, nothing_more) {
  hostile_.reset();
  EXPECT_EQ(verdict(), "closed the connection");
}

TEST_F(tcp_hostile, a_reset) {
  const linger at_once{1, 0};
  ::setsockopt(hostile_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  hostile_.reset();
  EXPECT_EQ(verdict(), "Connection reset by peer");
}

TEST_F(tcp_hostile, garbage) {
  const auto seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::vector<std::uint32_t> bytes(4096);
  for (auto& b : bytes) b = static_cast<std::uint32_t>(random());
  say(bytes.data(), bytes.size() * sizeof bytes[0]);
  EXPECT_FALSE(verdict().empty());
}

}  // namespace
}  // namespace strata::net::test
