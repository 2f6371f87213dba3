// SPDX-License-Identifier: Apache-2.0
// The promises of every transport, kept over UDP, also where the network loses, doubles and
// reorders.
#include "net/udp/udp_transport.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>

#include "../common/denied_calls.hpp"
#include "addressed_suite.hpp"
#include "strata/error.hpp"
#include "transport_suite.hpp"
#include "udp_support.hpp"

namespace strata::net::test {
namespace {

using udp::udp_transport;
using transports = std::vector<std::unique_ptr<transport>>;

// A transport, and what it talks through, which must be there longer. A node has threads that look
// after what is lost; the tests' come and go.
class through final : public transport {
 public:
  through(std::shared_ptr<bad_network> network, std::unique_ptr<udp_transport> t)
      : network_(std::move(network)), transport_(std::move(t)) {
    if (network_ == nullptr) return;
    keeper_ = std::thread([this] {
      std::unique_lock held(lock_);
      while (!end_.wait_for(held, std::chrono::milliseconds(1), [this] { return ended_; }))
        transport_->tend();
    });
  }
  ~through() {
    {
      const std::lock_guard held(lock_);
      ended_ = true;
    }
    end_.notify_all();
    if (keeper_.joinable()) keeper_.join();
  }
  [[nodiscard]] capabilities about() const noexcept override { return transport_->about(); }
  [[nodiscard]] bool reaches(node_id n) const noexcept override { return transport_->reaches(n); }
  [[nodiscard]] send_outcome try_send(node_id n, header h, std::span<const std::byte> head,
                                      std::span<const std::byte> body) override {
    return transport_->try_send(n, h, head, body);
  }
  [[nodiscard]] bool flush(node_id n) override { return transport_->flush(n); }
  std::size_t poll(receiver& r, std::size_t most) override { return transport_->poll(r, most); }
  void wait_for_messages(std::int64_t ns) override { transport_->wait_for_messages(ns); }
  void wake_receiver() noexcept override { transport_->wake_receiver(); }
  void wait_for_room(std::int64_t ns) override { transport_->wait_for_room(ns); }
  void wake_sender() noexcept override { transport_->wake_sender(); }
  void drop(node_id n) noexcept override { transport_->drop(n); }
  [[nodiscard]] traffic counted() const noexcept override { return transport_->counted(); }

 private:
  std::shared_ptr<bad_network> network_;
  std::unique_ptr<udp_transport> transport_;
  std::mutex lock_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread keeper_;
};

transport_maker maker(const char* name, const change_settings& change = {},
                      const bad_network::odds* odds = nullptr) {
  return {name, [change, odds](node_id nodes, bool small_buffers) {
            std::shared_ptr<bad_network> network;
            if (odds != nullptr) network = std::make_shared<bad_network>(*odds, 1);
            auto all = udp_nodes(
                nodes,
                [&](udp::settings& s) {
                  if (change) change(s);
                  if (small_buffers) s.send_buffer_bytes = s.receive_buffer_bytes = 0;
                },
                network.get());
            transports result;
            for (auto& t : all) result.push_back(std::make_unique<through>(network, std::move(t)));
            return result;
          }};
}

constexpr bad_network::odds bad{.loss = 0.02, .duplication = 0.02, .delay = 0.05};

INSTANTIATE_TEST_SUITE_P(udp, transport_suite,
                         testing::Values(maker("by_default"),
                                         maker("ethernet",
                                               [](udp::settings& s) { s.datagram_bytes = 1472; }),
                                         maker("at_two_addresses",
                                               [](udp::settings& s) {
                                                 s.bind_addresses = {"127.0.0.1", "127.0.0.2"};
                                               }),
                                         maker("through_a_bad_network", {}, &bad)),
                         name_of);

INSTANTIATE_TEST_SUITE_P(udp, addressed_suite,
                         testing::Values(addressed_maker{
                             "by_default", [](node_id self, node_id nodes) {
                               return std::make_unique<udp_transport>(udp_settings(self, nodes));
                             }}));

TEST(udp_transport, a_lone_message_is_one_datagram) {
  auto all = udp_nodes(2);
  const std::uint64_t before = all[0]->counted().writes;
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), content(0, 0, 64), {}), send_outcome::sent);
  EXPECT_EQ(all[0]->counted().writes, before + 1);
  checking_receiver r(1, small_size);
  r.receive(*all[1], 1);
}

TEST(udp_transport, a_burst_costs_few_writes_and_hardly_a_wake) {
  auto all = udp_nodes(2, [](udp::settings& s) {
    s.burst_gap_ns = 1'000'000'000;  // a slow machine sends slowly
    s.flush_deadline_ns = 10'000'000;
  });
  expect_few_writes_for_a_burst(*all[0], *all[1]);
}

TEST(udp_transport, what_is_collected_goes_out_when_it_is_flushed_or_the_node_leaves) {
  auto all = udp_nodes(2, [](udp::settings& s) {
    s.burst_gap_ns = 30'000'000'000;
    s.flush_deadline_ns = 60'000'000'000;
  });
  expect_collected_to_go_out(all[0], *all[1]);
}

TEST(udp_transport, what_is_under_way_arrives_before_the_end) {
  auto all = udp_nodes(2);
  checking_receiver r(1, small_size);
  expect_all_before_the_end(all[0], *all[1], r);
  EXPECT_EQ(r.lost[0][0], "has left");
}

// The node computes, and its threads only fetch what comes and do what is due.
TEST(udp_transport, what_has_arrived_before_the_end_waits_for_who_polls) {
  auto all = udp_nodes(2);
  constexpr std::size_t messages = 10;
  for (std::size_t i = 0; i < messages; ++i) send_patiently(*all[0], 0, 1, content(0, i, 64));
  std::atomic<bool> has_ended{false};
  std::thread ends([&] {
    all[0].reset();
    has_ended.store(true);
  });
  while (!has_ended.load()) all[1]->tend();
  ends.join();
  // For longer than what a leaving node has said may be under way.
  const std::int64_t until_ns = os::now_ns() + 100'000'000;
  while (os::now_ns() < until_ns) {
    all[1]->tend();
    std::this_thread::yield();
  }
  checking_receiver r(1, small_size);
  r.receive_until(*all[1], [&] { return !r.lost.empty(); });
  EXPECT_EQ(r.received[0], messages);
  EXPECT_EQ(r.lost[0][0], "has left");
}

// As the other end of a socket that is closed.
TEST(udp_transport, who_is_dropped_hears_of_it) {
  auto all = udp_nodes(2);
  checking_receiver r(1, small_size);
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), content(0, 0, 64), {}), send_outcome::sent);
  all[0]->drop(1);
  r.receive_until(*all[1], [&] { return !r.lost.empty(); });
  EXPECT_EQ(r.lost[0][0], "has left");
  EXPECT_EQ(r.received[0], 1U) << "what was sent before has come";
}

TEST(udp_transport, speaks_ipv6_too) {
  std::vector<std::unique_ptr<udp_transport>> all;
  try {
    all = udp_nodes(2, [](udp::settings& s) { s.bind_addresses = {"::1"}; });
  } catch (const user_error& e) {
    GTEST_SKIP() << e.what();
  }
  send_patiently(*all[0], 0, 1, content(0, 0, 64));
  checking_receiver r(1, small_size);
  r.receive(*all[1], 1);
}

TEST(udp_transport, a_peer_that_answers_nothing_is_lost) {
  auto all = udp_nodes(2, [](udp::settings& s) { s.silence_ns_max = 300'000'000; });
  // Node 1 neither polls nor waits.
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), {}, {}), send_outcome::sent);
  checking_receiver r(0);
  r.receive_until(*all[0], [&] { return !r.lost.empty(); });
  EXPECT_EQ(r.lost[1][0].rfind("has not answered", 0), 0U) << r.lost[1][0];
}

// As when all of a job is stopped, and goes on.
TEST(udp_transport, silence_while_nobody_looked_is_no_loss) {
  constexpr std::int64_t silence_ns = 500'000'000;
  auto all = udp_nodes(2, [](udp::settings& s) { s.silence_ns_max = silence_ns; });
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), content(0, 0, 64), {}), send_outcome::sent);
  std::this_thread::sleep_for(std::chrono::nanoseconds(3 * silence_ns));
  // A worker may send before anybody looks what is due, and reads only then.
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), content(0, 1, 64), {}), send_outcome::sent);
  all[0]->wait_for_messages(silence_ns / 10);
  checking_receiver here(0), there(1, small_size);
  (void)all[0]->poll(here, 1);
  EXPECT_TRUE(here.lost.empty()) << here.lost[1][0];
  there.receive(*all[1], 2);
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), content(0, 2, 64), {}), send_outcome::sent);
  there.receive(*all[1], 3);
}

// Whoever would be told that there is room again, the sender thread, does something else.
TEST(udp_transport, an_acknowledgement_that_found_no_room_goes_out_when_there_is_some) {
  auto all = udp_nodes(2);
  // Every second one is acknowledged at once.
  for (std::size_t m = 0; m < 2; ++m)
    ASSERT_EQ(all[1]->try_send(0, header_of(1, 0), content(1, m, 64), {}), send_outcome::sent);
  checking_receiver r(0, small_size);
  bool is_full = false;
  // To this thread.
  std::thread reads([&] {
    is_full = strata::test::deny_calls({SYS_sendmsg, SYS_sendmmsg}, EAGAIN);
    if (is_full) r.receive(*all[0], 2);
  });
  reads.join();
  if (!is_full) GTEST_SKIP() << "this system has no filters for system calls";
  const std::uint64_t before = all[0]->counted().writes;
  // Each of these is longer than the socket is left alone.
  for (int i = 0; i < 50 && all[0]->counted().writes == before; ++i)
    all[0]->wait_for_messages(3'000'000);
  EXPECT_GT(all[0]->counted().writes, before);
}

TEST(udp_transport, a_host_must_be_numeric) {
  udp_transport t(udp_settings(0, 2));
  EXPECT_THROW(t.admit(1, {"no address", 1, udp::fresh_nonce()}), user_error);
  EXPECT_FALSE(t.reaches(1));
}

// Three nodes, of which the second does not come. What the first says to that.
std::string words_without_one(std::int64_t patience_ns) {
  udp_transport here{udp_settings(0, 3)}, silent{udp_settings(1, 3)}, there{udp_settings(2, 3)};
  const std::vector<launch::address> directory{here.address(), silent.address(), there.address()};
  const std::int64_t deadline_ns = os::now_ns() + patience_ns;
  std::thread other([&] { EXPECT_THROW(there.connect(directory, deadline_ns), strata::error); });
  std::string words;
  try {
    here.connect(directory, deadline_ns);
    ADD_FAILURE();
  } catch (const strata::error& e) {
    words = e.what();
  }
  other.join();
  return words;
}

TEST(without_one, it_is_named) {
  std::int64_t patience_ns = 500'000'000;
  std::string words = words_without_one(patience_ns);
  // A machine that needs longer for the other one gets longer.
  while (words.find("node 1, node 2:") != std::string::npos) {
    ASSERT_LT(patience_ns, too_long_ns) << words;
    words = words_without_one(patience_ns *= 2);
  }
  EXPECT_NE(words.find("in vain for node 1:"), std::string::npos) << words;
}

// Of what this process shares with nobody either: buffers of connections are memory files.
std::int64_t shared_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssShmem:")) return std::atoll(line.c_str() + line.find(':') + 1);
  }
  return 0;
}

// More may come and go than there would be memory for at once.
TEST(udp_transport, little_memory_is_left_of_peers_that_have_gone) {
  constexpr node_id nodes = 9;
  const std::int64_t before = shared_kib();
  auto all = udp_nodes(nodes);
  const std::vector<std::byte> large(60'000);
  for (node_id n = 1; n < nodes; ++n) {
    for (int i = 0; i < 8; ++i)
      EXPECT_NE(all[0]->try_send(n, header_of(0, n), large, {}), send_outcome::would_block);
  }
  EXPECT_GT(shared_kib() - before, 2'048);
  all.resize(1);
  checking_receiver r(0, small_size);
  r.receive_until(*all[0], [&] { return r.lost.size() == nodes - 1U; });
  EXPECT_LT(shared_kib() - before, 1'024);
}

}  // namespace
}  // namespace strata::net::test
