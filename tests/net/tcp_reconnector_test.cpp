// SPDX-License-Identifier: Apache-2.0
// Nodes of a running job that connect once more: who is let in, over which network, and that an
// attempt ends, whatever is at the other end.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "closed_door.hpp"
#include "net/tcp/handshake.hpp"
#include "net/tcp/reconnector.hpp"
#include "strata/error.hpp"

namespace strata::net::test {
namespace {

constexpr std::int64_t one_second_ns = 1'000'000'000;

class met_member final : public tcp::reconnector::hands {
 public:
  static tcp::identity identity_of(node_id n) {
    tcp::identity me;
    me.job = 77;
    me.key.fill(9);
    me.node = n;
    me.nodes = 3;
    me.build_id = "0123abcd";
    return me;
  }
  // Listens on networks 4 and 6.
  explicit met_member(tcp::identity me, tcp::reconnector::settings s = {}) {
    std::vector<tcp::listener> doors;
    for (int i = 0; i < 2; ++i) {
      doors.emplace_back("127.0.0.1", std::uint16_t{0}, std::size_t{0});
      where.push_back(doors.back().address());
    }
    all_.emplace(std::move(me), std::move(doors), std::vector<tcp::reconnector::number>{4, 6}, s);
    thread_ = std::thread([this] {
      try {
        all_->run(*this);
      } catch (const error&) {
        // What it needs is used up.
      }
    });
  }
  ~met_member() {
    all_->stop();
    thread_.join();
  }

  void on_met(node_id n, tcp::reconnector::number network, os::descriptor socket) override {
    const std::lock_guard lock(mutex_);
    met.push_back({n, network, std::move(socket)});
    changed_.notify_all();
  }
  void on_not_met(node_id n, tcp::reconnector::number network) override {
    const std::lock_guard lock(mutex_);
    not_met.emplace_back(n, network);
    changed_.notify_all();
  }
  // Until so many have been met, and so many attempts have failed.
  void wait(std::size_t meetings, std::size_t failures) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return met.size() >= meetings && not_met.size() >= failures; });
  }

  [[nodiscard]] bool connect(node_id n, tcp::reconnector::number network,
                             const launch::address& there) {
    return all_->connect(n, network, there);
  }

  struct meeting_of {
    node_id n;
    tcp::reconnector::number network;
    os::descriptor socket;
  };
  std::vector<launch::address> where;
  std::vector<meeting_of> met;
  std::vector<std::pair<node_id, tcp::reconnector::number>> not_met;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<tcp::reconnector> all_;
  std::thread thread_;
};

using failures = std::vector<std::pair<node_id, tcp::reconnector::number>>;

TEST(tcp_reconnector, joins_two_as_often_as_they_like_and_says_over_which_network) {
  met_member lower(met_member::identity_of(0)), higher(met_member::identity_of(2));
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t door = i % 2;
    ASSERT_TRUE(higher.connect(0, door == 0 ? 4 : 6, lower.where[door]));
    higher.wait(i + 1, 0);
    lower.wait(i + 1, 0);
    for (const met_member* const m : {&lower, &higher}) {
      EXPECT_EQ(m->met[i].n, m == &lower ? 2 : 0);
      EXPECT_EQ(m->met[i].network, door == 0 ? 4 : 6);
    }
    const char said = 'x';
    ASSERT_EQ(::send(higher.met[i].socket.get(), &said, 1, 0), 1);
    char heard = 0;
    pollfd arrives{lower.met[i].socket.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&arrives, 1, -1), 1);
    ASSERT_EQ(::recv(lower.met[i].socket.get(), &heard, 1, 0), 1);
    EXPECT_EQ(heard, said);
  }
}

TEST(tcp_reconnector, refuses_who_does_not_belong_to_the_job) {
  met_member lower(met_member::identity_of(0));
  tcp::identity wrong_key = met_member::identity_of(1), wrong_build = wrong_key,
                other_job = wrong_key;
  wrong_key.key.fill(8);
  wrong_build.build_id = "another";
  other_job.job = 78;
  for (const tcp::identity& somebody : {wrong_key, wrong_build, other_job}) {
    met_member other(somebody);
    ASSERT_TRUE(other.connect(0, 4, lower.where[0]));
    other.wait(0, 1);
    EXPECT_EQ(other.not_met, (failures{{0, 4}}));
    EXPECT_TRUE(other.met.empty());
  }
  // It is not who was looked for; nor does the lower number connect.
  met_member higher(met_member::identity_of(2));
  ASSERT_TRUE(higher.connect(1, 4, lower.where[0]));
  higher.wait(0, 1);
  ASSERT_TRUE(lower.connect(2, 6, higher.where[1]));
  lower.wait(0, 1);
  EXPECT_TRUE(lower.met.empty());
  EXPECT_TRUE(higher.met.empty());
}

TEST(tcp_reconnector, gives_an_attempt_up_where_nobody_answers) {
  tcp::reconnector::settings s;
  s.attempt_limit_ns = one_second_ns / 20;
  met_member higher(met_member::identity_of(2), s);
  const closed_door nobodys;
  ASSERT_TRUE(higher.connect(0, 4, nobodys.address()));
  higher.wait(0, 1);
  const tcp::listener silent("127.0.0.1", 0, 0);
  ASSERT_TRUE(higher.connect(1, 6, silent.address()));
  higher.wait(0, 2);
  EXPECT_EQ(higher.not_met, (failures{{0, 4}, {1, 6}}));
}

// Where a wait fails from some time on.
class ground_that_fails final : public tcp::mesh_ground {
 public:
  std::int64_t now_ns() override { return real_.now_ns(); }
  os::descriptor connect(const launch::address& to, std::size_t buffer_bytes) override {
    return real_.connect(to, buffer_bytes);
  }
  os::descriptor accept(int door, std::string& from) override { return real_.accept(door, from); }
  int wait(std::span<pollfd> what, std::int64_t limit_ns) override {
    const int n = real_.wait(what, limit_ns);
    if (!fails) return n;
    errno = ENOMEM;
    return -1;
  }
  std::atomic<bool> fails{false};

 private:
  tcp::mesh_ground& real_ = *tcp::solid_ground();
};

// Else those who have asked would wait for an answer, and try no other network.
TEST(tcp_reconnector, gives_all_attempts_up_when_it_cannot_go_on) {
  ground_that_fails ground;
  tcp::reconnector::settings s;
  s.ground = &ground;
  s.attempt_limit_ns = 3600 * one_second_ns;
  met_member higher(met_member::identity_of(2), s);
  const tcp::listener silent("127.0.0.1", 0, 0);
  ASSERT_TRUE(higher.connect(0, 4, silent.address()));
  ground.fails = true;
  const std::size_t asked = higher.connect(1, 6, silent.address()) ? 2 : 1;
  higher.wait(0, asked);
  EXPECT_FALSE(higher.connect(0, 6, silent.address()));
}

}  // namespace
}  // namespace strata::net::test
