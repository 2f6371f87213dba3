// SPDX-License-Identifier: Apache-2.0
// The survey over real sockets, with its threads: also with neighbours that say nothing, nonsense,
// or something before its time.
#include "cluster/opening/surveyor.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "net/tcp/tcp_transport.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

constexpr node_id three = 3;

// Two nodes of three, and a third that is no more than the far ends of its connections.
class survey_of_three : public testing::Test {
 protected:
  survey_of_three() { connect(); }
  void connect() {
    std::array<std::vector<os::descriptor>, three> ends;
    for (auto& e : ends) e.resize(three);
    for (node_id a = 0; a < three; ++a) {
      for (node_id b = 0; b < a; ++b) {
        std::array<int, 2> pair{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()) != 0)
          throw error("no sockets");
        ends[a][b] = os::descriptor(pair[0]);
        ends[b][a] = os::descriptor(pair[1]);
      }
    }
    for (node_id n = 0; n < 2; ++n)
      transports[n].emplace(n, std::move(ends[n]), net::tcp::options{});
    silent = std::move(ends[2]);
  }

  static constexpr std::int64_t patience_ns_max = 2'000'000'000;
  std::array<std::optional<net::tcp::tcp_transport>, 2> transports;
  std::vector<os::descriptor> silent;
  survey::limits limits{.patience_ns = 20'000'000, .all_ns = 300'000'000};
};

TEST_F(survey_of_three, measures_and_is_measured_though_one_never_answers) {
  // A machine on which the other one needs longer for its answers gets longer.
  for (bool answered = false; !answered;) {
    const std::int64_t began = os::now_ns();
    surveyor zero(*transports[0], 0, three, {2, 1}, limits),
        one(*transports[1], 1, three, {}, limits);
    EXPECT_TRUE(one.results().empty());
    const auto found = zero.results();
    EXPECT_GE(os::now_ns() - began, limits.all_ns);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].node, 2);
    EXPECT_GE(found[0].latency_ns, limits.patience_ns / 2);
    EXPECT_EQ(found[0].bytes_per_s, 0);
    EXPECT_EQ(found[1].node, 1);
    EXPECT_TRUE(zero.end().empty());
    EXPECT_TRUE(one.end().empty());
    answered = found[1].latency_ns < limits.patience_ns && found[1].bytes_per_s > 0;
    if (answered) continue;
    ASSERT_LT(limits.patience_ns, patience_ns_max);
    limits.patience_ns *= 2;
    limits.all_ns *= 2;
    connect();
  }
}

TEST_F(survey_of_three, keeps_what_comes_before_its_time) {
  surveyor zero(*transports[0], 0, three, {}, limits);
  (void)zero.results();
  const std::vector<std::byte> payload(7, std::byte{42});
  EXPECT_NE(transports[1]->try_send(0, header_of(1, 0, kind::put), payload, {}),
            net::send_outcome::would_block);
  (void)transports[1]->flush(0);
  std::vector<early_message> early = zero.end();
  // Or it comes later still.
  struct : net::receiver {
    std::vector<early_message>* all = nullptr;
    void on_message(const net::header& h, std::span<const std::byte> p) override {
      all->push_back({h, {p.begin(), p.end()}});
    }
    void on_lost(node_id, const std::string&) override {}
  } by_hand;
  by_hand.all = &early;
  while (early.empty()) (void)transports[0]->poll(by_hand, 1);
  ASSERT_EQ(early.size(), 1U);
  EXPECT_EQ(static_cast<kind>(early[0].head.kind), kind::put);
  EXPECT_EQ(early[0].head.source, 1);
  EXPECT_EQ(early[0].payload, payload);
}

TEST_F(survey_of_three, a_connection_that_ends_or_lies_is_an_error) {
  {
    surveyor zero(*transports[0], 0, three, {1, 2}, {});
    silent[0].reset();
    EXPECT_THROW((void)zero.results(), error);
    EXPECT_THROW((void)zero.end(), error);
  }
  surveyor one(*transports[1], 1, three, {0}, {});
  const std::uint32_t number = 77;
  EXPECT_NE(transports[0]->try_send(1, header_of(0, 1, kind::pong),
                                    std::as_bytes(std::span(&number, 1)), {}),
            net::send_outcome::would_block);
  (void)transports[0]->flush(1);
  EXPECT_THROW((void)one.results(), error);
}

// A line on which there is no memory for what comes.
class without_memory final : public net::transport {
 public:
  [[nodiscard]] net::capabilities about() const noexcept override { return {true, "none"}; }
  [[nodiscard]] bool reaches(node_id) const noexcept override { return false; }
  net::send_outcome try_send(node_id, net::header, std::span<const std::byte>,
                             std::span<const std::byte>) override {
    return net::send_outcome::sent;
  }
  bool flush(node_id) override { return true; }
  std::size_t poll(net::receiver&, std::size_t) override { throw std::bad_alloc(); }
  void wait_for_messages(std::int64_t) override {}
  void wake_receiver() noexcept override {}
  void wait_for_room(std::int64_t) override { std::this_thread::yield(); }
  void wake_sender() noexcept override {}
  [[nodiscard]] traffic counted() const noexcept override { return {}; }
};

TEST(survey_without_memory, is_the_callers_exception) {
  without_memory line;
  surveyor zero(line, 0, three, {1}, {});
  EXPECT_THROW((void)zero.results(), std::bad_alloc);
  EXPECT_THROW((void)zero.end(), std::bad_alloc);
}

}  // namespace
}  // namespace strata::cluster
