// SPDX-License-Identifier: Apache-2.0
// The promises of every transport, kept by shared memory; here between nodes of one process, which
// is how nodes within a process are connected.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <numeric>
#include <thread>

#include "net/shm/shm_transport.hpp"
#include "os/futex.hpp"
#include "transport_suite.hpp"

namespace strata::net::test {
namespace {

std::vector<std::unique_ptr<transport>> make_shm(node_id nodes, bool) {
  const int memory = ::memfd_create("shm_test", MFD_CLOEXEC);
  shm::settings s;
  s.memory = memory;
  s.ring_bytes = std::size_t{256} << 10;  // the tests go round it, and fill it
  s.nodes.resize(nodes);
  std::iota(s.nodes.begin(), s.nodes.end(), node_id{0});
  std::vector<std::unique_ptr<transport>> all;
  for (s.self = 0; s.self < nodes; ++s.self) all.push_back(std::make_unique<shm::shm_transport>(s));
  ::close(memory);
  return all;
}

// Who has died the launcher knows, and the heartbeat.
INSTANTIATE_TEST_SUITE_P(shm, transport_suite,
                         testing::Values(transport_maker{"shm", make_shm, false}), name_of);

// A reader that has left its writer alone for a moment, because messages followed each other, still
// takes in all that has come: after unattended() nobody else is woken for it.
TEST(shm, takes_in_all_that_has_come_in_a_train) {
  const auto nodes = make_shm(2, true);
  struct counter final : receiver {
    unsigned messages = 0;
    void on_message(const header&, std::span<const std::byte>) override { ++messages; }
    void on_lost(node_id, const std::string& why) override { FAIL() << why; }
  } got;
  unsigned sent = 0;
  const auto send = [&] {
    header h{};
    h.source = 0;
    h.destination = 1;
    ASSERT_EQ(nodes[0]->try_send(1, h, {}, {}), send_outcome::sent);
    ++sent;
  };
  nodes[1]->attended();
  for (unsigned i = 0; i < 1000; ++i) {
    send();
    send();
    EXPECT_EQ(nodes[1]->poll(got, 1), 1U);  // it has seen the second
    send();
    EXPECT_EQ(nodes[1]->poll(got, 256), 2U);
  }
  EXPECT_TRUE(nodes[1]->unattended());
  EXPECT_EQ(got.messages, sent);
}

// Node 1 with a receiver and its stand-in, who take turns at the inbox; node 0 sends.
class shm_stand_in : public testing::Test {
 protected:
  void SetUp() override {
    if (!os::can_wait_on_two()) GTEST_SKIP() << "needs Linux 5.16";
    receiver_thread_ = std::thread([this] {
      while (!over_.load()) {
        sleep_for_messages(node());
        poll(got_by_receiver_);
      }
    });
  }
  void TearDown() override {
    if (!receiver_thread_.joinable()) return;
    over_.store(true);
    node().wake_receiver();
    receiver_thread_.join();
  }

  transport& node() { return *nodes_[1]; }
  void send() { ASSERT_EQ(nodes_[0]->try_send(1, header_of(0, 1), {}, {}), send_outcome::sent); }
  void stand_in() {
    while (own_.load() == 0) {
      const auto outcome = node().stand_in(own_, 0);
      if (outcome == transport::stand_in_outcome::not_here) return;
      if (outcome != transport::stand_in_outcome::is_to_poll) continue;
      node().attended();
      poll(got_by_stand_in_);
      (void)node().unattended();
      poll(got_by_stand_in_);
    }
  }
  unsigned got() { return got_by_receiver_.load() + got_by_stand_in_.load(); }
  void wait_until_got(unsigned messages) {
    expect_wake("a receiver and its stand-in", [&] {
      const std::int64_t began_ns = os::now_ns();
      while (got() < messages && os::now_ns() - began_ns < too_long_ns) std::this_thread::yield();
    });
  }

  os::futex_word own_{0};
  std::atomic<unsigned> got_by_receiver_{0}, got_by_stand_in_{0};

 private:
  void poll(std::atomic<unsigned>& count) {
    struct counter final : receiver {
      explicit counter(std::atomic<unsigned>& c) : count(c) {}
      std::atomic<unsigned>& count;
      void on_message(const header&, std::span<const std::byte>) override { ++count; }
      void on_lost(node_id, const std::string& why) override { FAIL() << why; }
    } r(count);
    const std::lock_guard lock(inbox_);
    while (node().poll(r, 256) != 0) {
    }
  }

  const std::vector<std::unique_ptr<transport>> nodes_ = make_shm(2, true);
  std::mutex inbox_;
  std::atomic<bool> over_{false};
  std::thread receiver_thread_;
};

TEST_F(shm_stand_in, takes_in_what_arrives_until_its_own_word_changes) {
  std::thread worker([this] { stand_in(); });
  unsigned sent = 0;
  // Once both sleep it is the stand-in's.
  while (sent < 1000 || got_by_stand_in_.load() == 0) {
    send();
    wait_until_got(++sent);
  }
  own_.store(1);
  os::futex_wake(own_, 1);
  worker.join();
  const unsigned before = got_by_receiver_.load();
  for (unsigned i = 0; i < 100; ++i) {
    send();
    wait_until_got(++sent);
  }
  EXPECT_EQ(got_by_receiver_.load(), before + 100);
  EXPECT_EQ(got(), sent);
}

TEST_F(shm_stand_in, is_dismissed_for_good) {
  std::thread worker([this] { stand_in(); });
  for (unsigned sent = 0; sent < 100;) {
    send();
    wait_until_got(++sent);
  }
  node().dismiss_stand_in();
  worker.join();
  EXPECT_EQ(node().stand_in(own_, 0), transport::stand_in_outcome::not_here);
  send();
  wait_until_got(101);
}

// Whoever leaves or is dismissed just as a message comes leaves nothing behind.
TEST_F(shm_stand_in, leaves_no_message_behind) {
  unsigned sent = 0;
  for (unsigned round = 0; round < 300; ++round) {
    own_.store(0);
    std::thread worker([this] { stand_in(); });
    std::thread leaver([this] {
      own_.store(1);
      os::futex_wake(own_, 1);
    });
    for (unsigned i = 0; i < 3; ++i) {
      send();
      wait_until_got(++sent);
    }
    leaver.join();
    worker.join();
    send();
    wait_until_got(++sent);
  }
}

}  // namespace
}  // namespace strata::net::test
