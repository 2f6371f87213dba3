// SPDX-License-Identifier: Apache-2.0
// Links with the threads of real nodes, over a transport whose credits are soon used up: a cycle of
// nodes that flood, each by way of others, comes to its end.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "cluster/links/forwarding.hpp"
#include "cluster/links/links.hpp"
#include "net/inproc/inproc_transport.hpp"

namespace strata::cluster {
namespace {

constexpr std::uint32_t flood_messages = 400;
constexpr std::size_t flood_bytes = std::size_t{8} << 10;
constexpr std::size_t flood_credits = std::size_t{16} << 10;

// Only neighbours share a network.
routes::link_cost ring_of(node_id nodes) {
  return [nodes](node_id a, node_id b) {
    const auto apart = static_cast<unsigned>(a > b ? a - b : b - a);
    return apart == 1 || apart == nodes - 1U ? std::optional<link>(1) : std::nullopt;
  };
}

// One program, one sender, one receiver.
class flooding_node final : public net::receiver {
 public:
  flooding_node(const std::shared_ptr<net::inproc::meeting>& where, node_id self)
      : self_(self), nodes_(where->nodes()), way_(where, self) {}

  // When all are there.
  void begin(std::atomic<unsigned>& done) {
    links_ = std::make_unique<links>(self_, std::vector<net::transport*>{&way_},
                                     routes(self_, nodes_, ring_of(nodes_)));
    sender_ = std::thread([this] { links_->run_sender(way_); });
    receiver_ = std::thread([this, &done] {
      while (!is_over_) {
        if (way_.poll(*this, 16) == 0 && !is_over_) way_.wait_for_messages(net::wait_forever_ns);
        if (received_ == flood_messages) {
          ++received_;
          ++done;
        }
      }
    });
    program_ = std::thread([this] {
      const auto to = static_cast<node_id>((self_ + nodes_ / 2) % nodes_);
      std::vector<std::byte> payload(flood_bytes);
      for (std::uint32_t i = 0; i < flood_messages; ++i) {
        links_->wait_for_room(to);
        std::memcpy(payload.data(), &i, sizeof i);
        links_->post(to, kind::message, payload, {});
      }
    });
  }
  void end_sending() {
    program_.join();
    links_->stop();
    way_.wake_sender();
    sender_.join();
  }
  // When all have ended to send.
  void end() {
    is_over_ = true;
    way_.wake_receiver();
    receiver_.join();
    EXPECT_GT(links_->forwarded(), 0U);
    EXPECT_EQ(links_->describe_waits(), "");
  }

  void on_message(const net::header& h, std::span<const std::byte> payload) override {
    if (static_cast<kind>(h.kind) == kind::hold) return links_->hold(h.source, reader(payload));
    ASSERT_EQ(static_cast<kind>(h.kind), kind::forward);
    const forwarded f = take_forwarded(reader(payload), self_, nodes_);
    if (f.what.destination != self_) return links_->forward(f.what, f.payload);
    if (static_cast<kind>(f.what.kind) == kind::hold)
      return links_->hold(f.what.source, reader(f.payload));
    std::uint32_t number = 0;
    ASSERT_EQ(f.payload.size(), flood_bytes);
    std::memcpy(&number, f.payload.data(), sizeof number);
    EXPECT_EQ(number, received_++);
  }
  void on_lost(node_id, const std::string& why) override { FAIL() << why; }

 private:
  const node_id self_, nodes_;
  net::inproc::inproc_transport way_;
  std::unique_ptr<links> links_;
  std::uint32_t received_ = 0;  // of the receiver
  std::atomic<bool> is_over_{false};
  std::thread sender_, receiver_, program_;
};

TEST(links_in_process, a_cycle_of_nodes_that_flood_each_other_completes) {
  constexpr node_id nodes = 5;
  const auto where = std::make_shared<net::inproc::meeting>(nodes, flood_credits);
  std::vector<std::unique_ptr<flooding_node>> all;
  for (node_id n = 0; n < nodes; ++n) all.push_back(std::make_unique<flooding_node>(where, n));
  std::atomic<unsigned> done{0};
  for (const auto& n : all) n->begin(done);
  while (done != nodes) std::this_thread::yield();
  for (const auto& n : all) n->end_sending();
  for (const auto& n : all) n->end();
}

// A neighbour has ended in which nobody looks any more, and the transport does not tell that it
// has.
TEST(links_in_process, a_sender_gives_up_on_a_neighbour_that_takes_nothing) {
  const auto where = std::make_shared<net::inproc::meeting>(2, flood_credits);
  net::inproc::inproc_transport way(where, 0), other(where, 1);
  links l(0, {&way}, routes(0, 2, ring_of(2)));
  std::thread sender([&] { l.run_sender(way); });
  const std::vector<std::byte> payload(flood_bytes);
  while (!l.is_congested(1)) l.post(1, kind::message, payload, {});
  l.stop(1'000'000);
  way.wake_sender();
  sender.join();
  EXPECT_NE(l.describe_waits(), "");
}

}  // namespace
}  // namespace strata::cluster
