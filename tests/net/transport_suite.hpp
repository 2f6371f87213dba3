// SPDX-License-Identifier: Apache-2.0
// What every transport promises (net/transport.hpp), as tests over `transport&`. A test program
// names how transports are made:
//
//   INSTANTIATE_TEST_SUITE_P(tcp, transport_suite, testing::Values(transport_maker{...}), name_of);
//
// All nodes live in this process; each test gives them the threads that a node has. Include this in
// one source of the program.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "net/transport.hpp"
#include "transport_support.hpp"

namespace strata::net::test {

struct transport_maker {
  std::string name;
  // Transports of nodes 0 to nodes - 1, all connected. With small buffers a few messages of 4 KiB
  // fill what lies between two nodes (socket buffers of 8 KiB, small rings).
  std::function<std::vector<std::unique_ptr<transport>>(node_id nodes, bool small_buffers)> make;
  bool notices_loss = true;  // of a peer that was destroyed
};

// Else its bytes, among them addresses that differ each time, were part of what ctest calls a test.
inline void PrintTo(const transport_maker& m, std::ostream* out) { *out << m.name; }

inline std::string name_of(const testing::TestParamInfo<transport_maker>& info) {
  return info.param.name;
}

class transport_suite : public testing::TestWithParam<transport_maker> {
 protected:
  using transports = std::vector<std::unique_ptr<transport>>;
  static transports make(node_id nodes, bool small_buffers = false) {
    return GetParam().make(nodes, small_buffers);
  }

  // Each node sends `messages` to each node that to(i) names; all receive.
  static void exchange(transports& all, std::size_t messages,
                       const std::function<std::vector<node_id>(node_id)>& to,
                       const std::function<std::size_t(std::size_t)>& size = mixed_size) {
    std::vector<std::size_t> expected(all.size(), 0);
    for (node_id i = 0; i < all.size(); ++i) {
      for (const node_id peer : to(i)) expected[peer] += messages;
    }
    std::vector<std::thread> senders, receivers;
    senders_stay stay;
    for (node_id i = 0; i < all.size(); ++i) {
      transport& t = *all[i];
      senders.emplace_back([&t, i, messages, &to, &size, &stay] {
        const auto peers = to(i);
        for (std::size_t m = 0; m < messages; ++m) {
          const auto bytes = content(i, m, size(m));
          for (const node_id peer : peers) send_patiently(t, i, peer, bytes);
        }
        for (const node_id peer : peers) flush_patiently(t, peer);
        stay.until_over(t);
      });
      receivers.emplace_back([&t, i, &expected, &size] {
        checking_receiver r(i, size);
        r.receive(t, expected[i]);
        EXPECT_TRUE(r.lost.empty());
      });
    }
    for (std::thread& t : receivers) t.join();
    for (const auto& t : all) stay.over(*t);
    for (std::thread& t : senders) t.join();
  }
};

TEST_P(transport_suite, says_what_it_reaches) {
  const auto all = make(3);
  EXPECT_FALSE(all[1]->reaches(1));
  EXPECT_TRUE(all[1]->reaches(0));
  EXPECT_TRUE(all[1]->reaches(2));
  EXPECT_FALSE(all[1]->reaches(3));
  EXPECT_TRUE(all[1]->about().reliable);
}

TEST_P(transport_suite, keeps_order_and_content_between_all_pairs) {
  auto all = make(4);
  exchange(all, 800, [](node_id i) {
    std::vector<node_id> others;
    for (node_id n = 0; n < 4; ++n) {
      if (n != i) others.push_back(n);
    }
    return others;
  });
}

TEST_P(transport_suite, carries_every_size) {
  auto all = make(2);
  // All small ones, then steps, then all around the largest.
  const auto size = [](std::size_t m) -> std::size_t {
    if (m < 600) return m;
    if (m < 1100) return 600 + (m - 600) * 129;
    return payload_bytes_max - (m - 1100) % 64;
  };
  exchange(
      all, 1164, [](node_id i) { return std::vector<node_id>{static_cast<node_id>(1 - i)}; }, size);
}

TEST_P(transport_suite, a_mutual_flood_through_small_buffers_completes) {
  auto all = make(2, true);
  exchange(all, 1500, [](node_id i) { return std::vector<node_id>{static_cast<node_id>(1 - i)}; });
}

TEST_P(transport_suite, a_cycle_of_nodes_that_flood_completes) {
  constexpr node_id nodes = 5;
  auto all = make(nodes, true);
  exchange(all, 500,
           [](node_id i) { return std::vector<node_id>{static_cast<node_id>((i + 1) % nodes)}; });
}

TEST_P(transport_suite, keeps_the_order_of_each_of_many_sending_threads) {
  static constexpr unsigned senders = 4;
  constexpr std::uint32_t messages = 3000;
  auto all = make(2);
  const sender_thread flusher(*all[0], 2);
  std::vector<std::thread> threads;
  for (unsigned s = 0; s < senders; ++s) {
    threads.emplace_back([&, s] {
      for (std::uint32_t m = 0; m < messages;) {
        const auto bytes = std::as_bytes(std::span(&m, 1));
        const auto kind = static_cast<message_kind>(s);
        // Only one thread may wait for room: the others try again.
        if (all[0]->try_send(1, header_of(0, 1, kind), bytes, {}) == send_outcome::would_block) {
          std::this_thread::yield();
        } else {
          ++m;
        }
      }
    });
  }
  struct : receiver {
    void on_message(const header& h, std::span<const std::byte> payload) override {
      std::uint32_t m = 0;
      ASSERT_EQ(payload.size(), sizeof m);
      std::memcpy(&m, payload.data(), sizeof m);
      ASSERT_LT(h.kind, senders);
      ASSERT_EQ(m, next[h.kind]++);
      ++total;
    }
    void on_lost(node_id, const std::string& why) override { FAIL() << why; }
    std::array<std::uint32_t, senders> next{};
    std::size_t total = 0;
  } r;
  while (r.total < std::size_t{senders} * messages) {
    if (all[1]->poll(r, 64) == 0) sleep_for_messages(*all[1]);
  }
  for (std::thread& t : threads) t.join();
}

TEST_P(transport_suite, a_refused_sender_hears_of_room_and_loses_nothing) {
  auto all = make(2, true);
  transport& t = *all[0];
  constexpr std::size_t size = 4096;
  constexpr std::size_t extra = 200;
  std::size_t fits = 0;
  for (;; ++fits) {
    ASSERT_LT(fits, 100'000u) << "a flood is not bounded";
    const auto bytes = content(0, fits, size);
    if (t.try_send(1, header_of(0, 1), {}, bytes) == send_outcome::would_block) break;
  }
  // The rest has to wait until somebody receives.
  senders_stay stay;
  std::thread sender([&] {
    for (std::size_t m = fits; m < fits + extra; ++m) send_patiently(t, 0, 1, content(0, m, size));
    flush_patiently(t, 1);
    stay.until_over(t);
  });
  checking_receiver r(1, [](std::size_t) { return size; });
  r.receive(*all[1], fits + extra);
  stay.over(t);
  sender.join();
  EXPECT_EQ(all[1]->poll(r, 64), 0u);
  EXPECT_EQ(r.total, fits + extra);
}

TEST_P(transport_suite, sleeping_receivers_are_woken_in_every_round) {
  constexpr std::size_t rounds = 3000;
  auto all = make(2);
  const sender_thread first(*all[0], 2);
  const sender_thread second(*all[1], 2);
  const auto play = [&](node_id self) {
    checking_receiver r(self, small_size);
    const auto peer = static_cast<node_id>(1 - self);
    for (std::size_t m = 0; m < rounds; ++m) {
      if (self == 1) r.receive(*all[self], m + 1);
      const auto bytes = content(self, m, 64);
      const send_outcome outcome = all[self]->try_send(peer, header_of(self, peer), bytes, {});
      ASSERT_TRUE(outcome == send_outcome::sent || outcome == send_outcome::staged);
      if (self == 0) r.receive(*all[self], m + 1);
    }
  };
  std::thread other(play, node_id{1});
  play(0);
  other.join();
}

TEST_P(transport_suite, bursts_end_without_another_message) {
  constexpr std::size_t rounds = 300;
  auto all = make(2);
  const sender_thread first(*all[0], 2);
  const sender_thread second(*all[1], 2);
  const auto size = [](std::size_t) { return std::size_t{24}; };
  const auto burst_of = [](std::size_t round) { return round % 13 + 1; };
  std::thread echo([&] {
    checking_receiver r(1, size);
    std::size_t expected = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      expected += burst_of(round);
      r.receive(*all[1], expected);
      ASSERT_NE(all[1]->try_send(0, header_of(1, 0), content(1, round, 24), {}),
                send_outcome::would_block);
    }
  });
  checking_receiver r(0, size);
  std::size_t m = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < burst_of(round); ++i, ++m) {
      ASSERT_NE(all[0]->try_send(1, header_of(0, 1), content(0, m, 24), {}),
                send_outcome::would_block);
    }
    r.receive(*all[0], round + 1);
  }
  echo.join();
}

TEST_P(transport_suite, a_call_ends_the_waits_before_and_during_them) {
  auto all = make(2);
  transport& t = *all[0];
  t.wake_receiver();
  sleep_for_messages(t);
  t.wake_sender();
  sleep_for_room(t);
  constexpr unsigned rounds = 500;
  std::atomic<unsigned> called{0};
  std::atomic<unsigned> seen{0};
  const auto play = [&](const std::function<void()>& wait, const std::function<void()>& wake) {
    called = seen = 0;
    std::thread sleeper([&] {
      for (unsigned i = 1; i <= rounds; ++i) {
        while (called.load() < i) wait();
        seen.store(i);
      }
    });
    for (unsigned i = 1; i <= rounds; ++i) {
      called.store(i);
      wake();
      while (seen.load() < i) std::this_thread::yield();
    }
    sleeper.join();
  };
  play([&] { sleep_for_messages(t); }, [&] { t.wake_receiver(); });
  play([&] { sleep_for_room(t); }, [&] { t.wake_sender(); });
}

TEST_P(transport_suite, waits_end_when_the_time_is_over) {
  auto all = make(2);
  for (int i = 0; i < 3; ++i) {
    all[0]->wait_for_messages(1'000'000);
    all[0]->wait_for_room(1'000'000);
    all[0]->wait_for_messages(0);
    all[0]->wait_for_room(0);
  }
}

TEST_P(transport_suite, somebody_else_may_attend_for_a_while) {
  constexpr std::size_t rounds = 400;
  constexpr std::size_t per_round = 5;
  auto all = make(2);
  const sender_thread flusher(*all[0], 2);
  std::thread sender([&] {
    for (std::size_t m = 0; m < rounds * per_round;) {
      if (all[0]->try_send(1, header_of(0, 1), content(0, m, 16), {}) ==
          send_outcome::would_block) {
        std::this_thread::yield();
      } else {
        ++m;
      }
    }
  });
  checking_receiver r(1, [](std::size_t) { return std::size_t{16}; });
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t goal = (round + 1) * per_round;
    if (round % 2 == 0) {
      all[1]->attended();
      while (r.total < goal) {
        if (all[1]->poll(r, 1) == 0) std::this_thread::yield();
      }
      (void)all[1]->unattended();
    } else {
      r.receive(*all[1], goal);
    }
  }
  sender.join();
}

// A node whose receiver sleeps while nothing comes; others may look, too.
class napping_node {
 public:
  static constexpr std::size_t message_bytes = large_bytes;

  explicit napping_node(transport& t, std::size_t messages)
      : transport_(t), receiver_([this, messages] {
          while (taken() != messages) {
            if (take(256) != 0) continue;
            naps_ = true;
            sleep_for_messages(transport_);
            naps_ = false;
          }
        }) {}
  ~napping_node() {
    transport_.wake_receiver();
    receiver_.join();
  }

  std::size_t take(std::size_t most) {
    const std::lock_guard lock(inbox_);
    const std::size_t n = transport_.poll(r_, most);
    taken_ += n;
    return n;
  }
  [[nodiscard]] std::size_t taken() const { return taken_; }
  // The first one behind so many.
  void take_one_after(std::size_t messages) {
    while (taken() == messages && take(1) == 0) std::this_thread::yield();
  }
  void wait_until_it_naps() const {
    while (!naps_) std::this_thread::yield();
  }
  void wait_until_taken(std::size_t messages) const {
    while (taken() != messages) std::this_thread::yield();
  }

 private:
  transport& transport_;
  checking_receiver r_{1, [](std::size_t) { return message_bytes; }};
  std::mutex inbox_;
  std::atomic<std::size_t> taken_{0};
  std::atomic<bool> naps_{false};
  std::thread receiver_;
};

// Somebody attends while the receiver sleeps, takes one of several messages that have come at once,
// and has something better to do.
TEST_P(transport_suite, what_an_attendant_leaves_is_not_slept_over) {
  constexpr std::size_t rounds = 60, per_round = 8;
  auto all = make(2);
  const sender_thread sender(*all[0], 2);  // a transport may have to send something again
  transport& t = *all[1];
  napping_node node(t, rounds * per_round);
  for (std::size_t m = 0; m < rounds * per_round; m += per_round) {
    node.wait_until_it_naps();
    t.attended();
    for (std::size_t i = 0; i < per_round; ++i) {
      const auto bytes = content(0, m + i, napping_node::message_bytes);
      while (all[0]->try_send(1, header_of(0, 1), bytes, {}) == send_outcome::would_block)
        std::this_thread::yield();
    }
    (void)all[0]->flush(1);  // what does not go at once is the sender's: who attends may not sleep
    node.take_one_after(m);
    if (t.unattended() && node.take(256) == 256) t.wake_receiver();
    node.wait_until_taken(m + per_round);
  }
}

// Somebody passes by who does not attend, and takes one of two messages that have come at once:
// before the receiver has woken up for them, as often as not.
TEST_P(transport_suite, what_a_passer_by_leaves_is_not_slept_over) {
  constexpr std::size_t rounds = 60, bytes = napping_node::message_bytes;
  auto all = make(2);
  const sender_thread sender(*all[0], 2);
  napping_node node(*all[1], 2 * rounds);
  for (std::size_t m = 0; m < 2 * rounds; m += 2) {
    auto both = content(0, m, bytes);
    const auto second = content(0, m + 1, bytes);
    both.insert(both.end(), second.begin(), second.end());
    node.wait_until_it_naps();
    send_together(*all[0], both);
    node.take_one_after(m);
    node.wait_until_taken(m + 2);
  }
}

TEST_P(transport_suite, a_flood_does_not_keep_others_out) {
  auto all = make(3);
  std::atomic<bool> heard{false};
  std::thread flooder([&] {
    const auto bytes = content(1, 0, 64);
    for (std::size_t m = 0; m < 2'000'000 && !heard.load(); ++m) {
      send_patiently(*all[1], 1, 0, bytes);
    }
    EXPECT_TRUE(heard.load());
    heard.store(true);
    flush_patiently(*all[1], 0);
  });
  struct : receiver {
    void on_message(const header& h, std::span<const std::byte>) override {
      if (h.source == 2) heard->store(true);
      ++total;
    }
    void on_lost(node_id, const std::string&) override {}
    std::atomic<bool>* heard = nullptr;
    std::size_t total = 0;
  } r;
  r.heard = &heard;
  while (r.total < 1000) (void)all[0]->poll(r, 1);
  send_patiently(*all[2], 2, 0, content(2, 0, 64));
  flush_patiently(*all[2], 0);
  while (!heard.load()) (void)all[0]->poll(r, 1);
  // The flooder may wait for room.
  std::atomic<bool> over{false};
  std::thread drain([&] {
    while (!over.load()) (void)all[0]->poll(r, 64);
  });
  flooder.join();
  over.store(true);
  drain.join();
}

TEST_P(transport_suite, counts_what_it_carries) {
  auto all = make(2);
  exchange(all, 64,
           [](node_id i) { return i == 0 ? std::vector<node_id>{1} : std::vector<node_id>{}; });
  EXPECT_EQ(all[0]->counted().messages_out, 64u);
  EXPECT_EQ(all[0]->counted().messages_in, 0u);
  EXPECT_EQ(all[1]->counted().messages_in, 64u);
  EXPECT_EQ(all[0]->counted().bytes_out, all[1]->counted().bytes_in);
  EXPECT_GT(all[0]->counted().writes, 0u);
}

TEST_P(transport_suite, a_lost_peer_is_reported_once_and_the_others_go_on) {
  if (!GetParam().notices_loss) GTEST_SKIP() << "not this transport's business";
  auto all = make(3);
  all[1].reset();
  checking_receiver r(0);
  r.receive_until(*all[0], [&] { return !r.lost.empty(); });
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), {}, {}), send_outcome::lost);
  EXPECT_TRUE(all[0]->flush(1));
  send_patiently(*all[2], 2, 0, content(2, 0, mixed_size(0)));
  flush_patiently(*all[2], 0);
  r.receive(*all[0], 1);
  while (all[0]->poll(r, 64) != 0) {
  }
  ASSERT_EQ(r.lost.size(), 1u);
  ASSERT_EQ(r.lost[1].size(), 1u);
  EXPECT_FALSE(r.lost[1][0].empty());
}

TEST_P(transport_suite, who_waits_for_room_of_a_lost_peer_is_told) {
  if (!GetParam().notices_loss) GTEST_SKIP() << "not this transport's business";
  auto all = make(2, true);
  const auto bytes = content(0, 0, 4096);
  std::size_t fits = 0;
  while (all[0]->try_send(1, header_of(0, 1), {}, bytes) != send_outcome::would_block) {
    ASSERT_LT(++fits, 100'000u);
  }
  std::thread sender([&] {
    while (all[0]->try_send(1, header_of(0, 1), {}, bytes) != send_outcome::lost) {
      (void)all[0]->flush(1);
      sleep_for_room(*all[0]);
    }
  });
  all[1].reset();
  checking_receiver r(0);
  r.receive_until(*all[0], [&] { return !r.lost.empty(); });
  sender.join();
}

TEST_P(transport_suite, a_dropped_peer_is_silent) {
  auto all = make(2);
  send_patiently(*all[1], 1, 0, content(1, 0, mixed_size(0)));
  flush_patiently(*all[1], 0);
  all[0]->drop(1);
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), {}, {}), send_outcome::lost);
  checking_receiver r(0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(all[0]->poll(r, 64), 0u);
  EXPECT_TRUE(r.lost.empty());
}

// What has arrived of it already is not handed over, either.
TEST_P(transport_suite, a_peer_that_is_dropped_by_its_message_is_silent_from_then_on) {
  auto all = make(2);
  for (std::size_t m = 0; m < 10; ++m) send_patiently(*all[1], 1, 0, content(1, m, 64));
  flush_patiently(*all[1], 0);
  struct : receiver {
    void on_message(const header&, std::span<const std::byte>) override {
      from->drop(1);
      ++total;
    }
    void on_lost(node_id, const std::string& why) override { FAIL() << why; }
    transport* from = nullptr;
    std::size_t total = 0;
  } r;
  r.from = all[0].get();
  while (r.total == 0) {
    if (all[0]->poll(r, 64) == 0) sleep_for_messages(*all[0]);
  }
  for (int i = 0; i < 10; ++i) EXPECT_EQ(all[0]->poll(r, 64), 0u);
  EXPECT_EQ(r.total, 1u);
}

}  // namespace strata::net::test
