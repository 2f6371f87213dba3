// SPDX-License-Identifier: Apache-2.0
// What a transport promises at which somebody can stand in for the receiver, as tests over
// `transport&`: as transport_suite.hpp, and used as that is.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "os/futex.hpp"
#include "transport_suite.hpp"

namespace strata::net::test {

// Node 1 with a receiver and its stand-in, who take turns at the inbox; node 0 sends.
class stand_in_suite : public testing::TestWithParam<transport_maker> {
 protected:
  void SetUp() override {
    if (node().stand_in(own_, 1) == transport::stand_in_outcome::not_here)
      GTEST_SKIP() << "over shared memory that needs Linux 5.16";
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
  void send() {
    send_patiently(*nodes_[0], 0, 1, {});
    flush_patiently(*nodes_[0], 1);
  }
  void send_two() {
    const std::vector<std::byte> both(large_bytes + 64);
    send_together(*nodes_[0], both);
    flush_patiently(*nodes_[0], 1);
  }
  // Somebody who neither attends nor comes again takes the first one behind so many.
  void pass_by(unsigned messages) {
    while (got() == messages && poll_once(got_by_receiver_, 1) == 0) std::this_thread::yield();
  }
  void stand_in() {
    using outcome = transport::stand_in_outcome;
    for (;;) {
      const outcome how = node().stand_in(own_, 0);
      if (how == outcome::not_here || (how == outcome::left && own_.load() != 0)) return;
      if (how == outcome::left) continue;
      poll(got_by_stand_in_);
      const bool goes_round = own_.load() == 0;
      const bool has_to_look = node().unattended();
      if (goes_round) continue;
      if (has_to_look) poll(got_by_stand_in_);
      return;
    }
  }
  // The stand-in, after a change of `own_`.
  void wake() {
    os::futex_wake(own_, 1);
    node().rouse_stand_in();
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
    while (poll_once(count, 256) != 0) {
    }
  }
  std::size_t poll_once(std::atomic<unsigned>& count, std::size_t messages_max) {
    struct counter final : receiver {
      explicit counter(std::atomic<unsigned>& c) : count(c) {}
      std::atomic<unsigned>& count;
      void on_message(const header&, std::span<const std::byte>) override { ++count; }
      void on_lost(node_id, const std::string& why) override { FAIL() << why; }
    } r(count);
    const std::lock_guard lock(inbox_);
    return node().poll(r, messages_max);
  }

  const std::vector<std::unique_ptr<transport>> nodes_ = GetParam().make(2, true);
  std::mutex inbox_;
  std::atomic<bool> over_{false};
  std::thread receiver_thread_;
};

TEST_P(stand_in_suite, takes_in_what_arrives_until_its_own_word_changes) {
  std::thread worker([this] { stand_in(); });
  unsigned sent = 0;
  // Once both sleep it is the stand-in's.
  while (sent < 1000 || got_by_stand_in_.load() == 0) {
    send();
    wait_until_got(++sent);
  }
  own_.store(1);
  wake();
  worker.join();
  const unsigned before = got_by_receiver_.load();
  for (unsigned i = 0; i < 100; ++i) {
    send();
    wait_until_got(++sent);
  }
  EXPECT_EQ(got_by_receiver_.load(), before + 100);
  EXPECT_EQ(got(), sent);
}

TEST_P(stand_in_suite, is_dismissed_for_good) {
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

// Nor whoever leaves just as a message comes.
TEST_P(stand_in_suite, leaves_no_message_behind) {
  unsigned sent = 0;
  for (unsigned round = 0; round < 300; ++round) {
    own_.store(0);
    std::thread worker([this] { stand_in(); });
    std::thread leaver([this] {
      own_.store(1);
      wake();
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

// As transport_suite's what_a_passer_by_leaves_is_not_slept_over.
TEST_P(stand_in_suite, finds_what_a_passer_by_leaves) {
  std::thread worker([this] { stand_in(); });
  for (unsigned sent = 0; sent < 120;) {
    send_two();
    pass_by(sent);
    wait_until_got(sent += 2);
  }
  own_.store(1);
  wake();
  worker.join();
}

}  // namespace strata::net::test
