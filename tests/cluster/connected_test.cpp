// SPDX-License-Identifier: Apache-2.0
// A node that listens on networks of different kinds connects over all of them at once.
#include "cluster/opening/connected.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cluster/opening/own_sockets.hpp"
#include "cluster/words/kinds.hpp"
#include "net/udp/udp_transport.hpp"
#include "os/clock.hpp"
#include "small_job.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

constexpr node_id all_nodes = 3;

// Each node is on two networks of this machine, the first for TCP, the second for UDP.
class two_networks : public testing::Test {
 protected:
  static launch::job_description job(node_id self) {
    launch::job_description j = small_job(self, all_nodes);
    j.host_of = {0, 1, 2};
    return j;
  }
  static const std::vector<launch::named_network>& networks() {
    static const auto all = launch::networks_in("127.0.0.0/8,udp:127.0.0.0/8", network_kind::tcp);
    return all;
  }
  void open(node_id n) { all_[n] = open_sockets(job(n), networks(), options{}); }
  // Over network 0 to some, over network 1 to others.
  [[nodiscard]] std::vector<std::vector<launch::address>> directories(
      const std::vector<node_id>& by_tcp, const std::vector<node_id>& by_udp) const {
    std::vector<std::vector<launch::address>> both(2, std::vector<launch::address>(all_nodes));
    for (const node_id n : by_tcp) both[0][n] = at(n, 0);
    for (const node_id n : by_udp) both[1][n] = at(n, 1);
    return both;
  }
  [[nodiscard]] launch::address at(node_id n, std::size_t network) const {
    const launch::address::door& d = all_[n].where.doors.at(network);
    return {d.host, d.port, d.worker};
  }
  std::vector<connected> connect_as(node_id self,
                                    const std::vector<std::vector<launch::address>>& to,
                                    const net::tidings& meanwhile = {}, bool partly = false) {
    const connecting how{
        net::tcp::identity_in(job(self), "build"), os::now_ns(), no_limit_ns, 0, meanwhile, partly};
    return connect(all_[self].parts, which::first, to, how);
  }
  std::array<own_sockets, all_nodes> all_;
};

TEST_F(two_networks, are_two_parts_of_a_kind_each) {
  open(0);
  ASSERT_EQ(all_[0].parts.size(), 2U);
  EXPECT_EQ(all_[0].parts[0].kind, network_kind::tcp);
  EXPECT_TRUE(all_[0].parts[0].serves(0));
  EXPECT_FALSE(all_[0].parts[0].serves(1));
  EXPECT_FALSE(all_[0].parts[0].serves({}));
  EXPECT_EQ(all_[0].parts[1].kind, network_kind::udp);
  EXPECT_TRUE(all_[0].parts[1].serves(1));
  EXPECT_TRUE(at(0, 0).worker.empty());
  EXPECT_FALSE(at(0, 1).worker.empty());
}

TEST_F(two_networks, join_each_those_who_use_it) {
  for (node_id n = 0; n < all_nodes; ++n) open(n);
  std::thread first([&] { (void)connect_as(1, directories({0}, {})); });
  std::vector<connected> by_udp;
  std::thread second([&] { by_udp = connect_as(2, directories({}, {0})); });
  std::vector<connected> mine = connect_as(0, directories({1}, {2}));
  first.join();
  second.join();
  ASSERT_EQ(mine.size(), 2U);
  EXPECT_TRUE(mine[0].reaches(1));
  EXPECT_FALSE(mine[0].reaches(2));
  EXPECT_FALSE(mine[1].reaches(1));
  EXPECT_TRUE(mine[1].reaches(2));
  EXPECT_NE(std::move(mine[0]).begin(0, {}).tcp, nullptr);
  EXPECT_NE(std::move(mine[1]).begin(0, {}).addressed, nullptr);
}

// Who says something over one network, until it is answered.
class asker final : net::receiver {
 public:
  explicit asker(net::transport& over) : over_(over) {}
  void ask_until_answered(node_id self, node_id other) {
    const std::uint32_t number = 1;
    while (over_.try_send(other, header_of(self, other, kind::ping),
                          std::as_bytes(std::span(&number, 1)),
                          {}) == net::send_outcome::would_block)
      over_.wait_for_room(net::wait_forever_ns);
    while (!over_.flush(other)) over_.wait_for_room(net::wait_forever_ns);
    while (!is_answered_) {
      if (over_.poll(*this, 1) == 0) over_.wait_for_messages(net::wait_forever_ns);
    }
  }

 private:
  void on_message(const net::header& h, std::span<const std::byte>) override {
    is_answered_ = static_cast<kind>(h.kind) == kind::pong;
  }
  void on_lost(node_id, const std::string& why) override { throw error(why); }

  net::transport& over_;
  bool is_answered_ = false;
};

// Who may be silent for an hour, in a debugger, is not lost to UDP before.
TEST(own_sockets, over_udp_wait_for_a_silent_node_no_shorter_than_the_job) {
  const std::int64_t usual_ns = net::udp::settings{}.silence_ns_max;
  options wanted;
  for (const unsigned ms : {100U, 3'600'000U}) {
    wanted.lost_after_ms = ms;
    EXPECT_EQ(udp_silence_ns_max(wanted), std::max(usual_ns, std::int64_t{ms} * 1'000'000));
  }
}

// Whose last word to a finished part was lost says it again.
TEST_F(two_networks, are_looked_after_by_who_waits_for_one_of_them) {
  for (node_id n = 0; n < all_nodes; ++n) open(n);
  std::thread others([&] {
    std::vector<connected> by_udp = connect_as(2, directories({}, {0}));
    connected::transport t = std::move(by_udp[1]).begin(2, {});
    asker(*t.over).ask_until_answered(2, 0);
    // Only now is node 0 done with the other network.
    (void)connect_as(1, directories({0}, {}));
  });
  std::vector<connected> mine = connect_as(0, directories({1}, {2}), {}, true);
  others.join();
  mine[1].leave_alone();
  EXPECT_TRUE(mine[0].reaches(1));
  EXPECT_TRUE(mine[1].reaches(2));
}

TEST_F(two_networks, tell_who_has_gone_while_one_of_them_is_waited_for) {
  for (node_id n = 0; n < all_nodes; ++n) open(n);
  std::thread others([&] {
    // Comes, and goes at once.
    (void)connect_as(2, directories({}, {0}));
    (void)connect_as(1, directories({0}, {}));
  });
  std::vector<connected> mine = connect_as(0, directories({1}, {2}), {}, true);
  others.join();
  EXPECT_TRUE(mine[1].ended().empty());
  mine[1].leave_alone();
  for (const ended_connection& e : mine[1].ended()) {
    EXPECT_EQ(e.node, 2);
    EXPECT_FALSE(e.why.empty());
  }
  EXPECT_TRUE(mine[0].ended().empty());
}

TEST_F(two_networks, are_not_waited_for_when_one_has_failed) {
  for (node_id n = 0; n < all_nodes; ++n) open(n);
  auto to = directories({1}, {2});  // who say nothing
  to[1][2].host = "no address";
  EXPECT_THROW((void)connect_as(0, to), user_error);
}

TEST_F(two_networks, are_not_waited_for_when_a_node_is_lost) {
  for (node_id n = 0; n < all_nodes; ++n) open(n);
  const os::descriptor word(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  unsigned looks = 0;
  const net::tidings hears{word.get(), [&] {
                             const std::uint64_t one = 1;
                             // Both look before they wait; then it comes.
                             if (++looks == 2 && ::write(word.get(), &one, sizeof one) < 0)
                               throw error("cannot write");
                             if (looks > 2) throw node_lost_error(1, "it has ended");
                           }};
  EXPECT_THROW((void)connect_as(0, directories({1}, {2}), hears), node_lost_error);
}

// ---- what goes wrong because a process has ended ----

connecting hearing(net::tidings meanwhile, std::int64_t limit_ns = no_limit_ns) {
  connecting how;
  how.began_ns = os::now_ns();
  how.start_limit_ns = limit_ns;
  how.meanwhile = std::move(meanwhile);
  return how;
}

TEST(what_goes_wrong, is_a_loss_if_the_launcher_tells_of_one_then) {
  const os::descriptor word(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  unsigned looks = 0;
  const connecting how = hearing({word.get(), [&] {
                                    if (++looks == 2) throw node_lost_error(1, "it has ended");
                                    const std::uint64_t one = 1;
                                    ASSERT_EQ(::write(word.get(), &one, sizeof one), 8);
                                  }});
  EXPECT_THROW(or_hear_why(how, [] { throw error("closed the connection"); }), node_lost_error);
  EXPECT_EQ(looks, 2U);
}

TEST(what_goes_wrong, is_what_it_is_if_nobody_tells_why) {
  const os::descriptor word(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  unsigned looks = 0;
  const connecting how = hearing({word.get(), [&] { ++looks; }}, 0);  // its time is over
  try {
    or_hear_why(how, [] { throw error("closed the connection"); });
    ADD_FAILURE() << "nothing is thrown";
  } catch (const error& e) {
    EXPECT_STREQ(e.what(), "closed the connection");
  }
  EXPECT_EQ(looks, 1U);
  or_hear_why(how, [] {});
  EXPECT_EQ(looks, 1U);
}

TEST(what_goes_wrong, is_not_asked_for_where_it_is_known) {
  const connecting how = hearing({0, [] { ADD_FAILURE() << "somebody looks"; }});
  EXPECT_THROW(or_hear_why(how, [] { throw user_error("another build"); }), user_error);
  EXPECT_THROW(or_hear_why(how, [] { throw node_lost_error(2, "it has ended"); }), node_lost_error);
}

#if defined(STRATA_HAS_UCX)
// UCX refuses to connect at once, before anything has been waited for.
TEST(what_goes_wrong, is_that_a_process_has_ended_before_others_connect_over_ucx) {
  const auto job = [](node_id self) {
    launch::job_description j;
    j.node = self;
    j.nodes = j.founders = j.capacity = 2;
    j.host_of = {0, 0};
    j.transport = transport_choice::ucx;
    return j;
  };
  std::optional<own_sockets> ended = open_sockets(job(1), {}, options{});
  own_sockets mine = open_sockets(job(0), {}, options{});
  const std::vector<std::vector<launch::address>> directory{{{}, ended->where}};
  ended.reset();
  connecting how = hearing({});
  how.me = net::tcp::identity_in(job(0), "build");
  EXPECT_THROW((void)connect(mine.parts, which::first, directory, how), error);
}
#endif

}  // namespace
}  // namespace strata::cluster
