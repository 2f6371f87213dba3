// SPDX-License-Identifier: Apache-2.0
// What tests of transports share: messages whose content is known, the threads of a node, and waits
// that must not take for ever.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../common/known_bytes.hpp"
#include "net/corked.hpp"
#include "net/transport.hpp"
#include "os/clock.hpp"

namespace strata::net::test {

// Nothing in these tests takes as long, on the busiest machine: a wait that does has lost its wake.
inline constexpr std::int64_t too_long_ns = 60'000'000'000;

template <class Wait>
void expect_wake(const char* what, const Wait& wait) {
  const std::int64_t start_ns = os::now_ns();
  wait();
  if (os::now_ns() - start_ns < too_long_ns) return;
  std::fprintf(stderr, "%s slept for ever: a wake was lost\n", what);
  std::abort();
}

inline void sleep_for_messages(transport& t) {
  expect_wake("wait_for_messages", [&] { t.wait_for_messages(too_long_ns); });
}
inline void sleep_for_room(transport& t) {
  expect_wake("wait_for_room", [&] { t.wait_for_room(too_long_ns); });
}

// Message number `index` from one node to another: its size and its bytes follow from the number.
inline std::size_t mixed_size(std::size_t index) {
  constexpr std::array<std::size_t, 16> sizes = {8,    0, 64,   1,  100, 7,  1000,   16,
                                                 4079, 3, 4096, 64, 64,  64, 20'000, 65'536};
  return sizes[index % sizes.size()];
}
inline std::size_t small_size(std::size_t) { return 64; }
inline std::vector<std::byte> content(node_id source, std::size_t index, std::size_t size) {
  return strata::test::known_bytes<payload_bytes_max>(index * 31 + source * 7U, size);
}

inline header header_of(node_id source, node_id destination, message_kind kind = 1) {
  header h{};
  h.kind = kind;
  h.source = source;
  h.destination = destination;
  return h;
}

// Sends from the thread that is the node's sender: what does not go now goes when there is room.
// Half of the payload is the head, half the body.
inline void send_patiently(transport& t, node_id self, node_id peer,
                           std::span<const std::byte> payload, message_kind kind = 1) {
  const auto head = payload.first(payload.size() / 2);
  const auto body = payload.subspan(head.size());
  for (;;) {
    const send_outcome outcome = t.try_send(peer, header_of(self, peer, kind), head, body);
    if (outcome == send_outcome::sent || outcome == send_outcome::staged) return;
    ASSERT_EQ(outcome, send_outcome::would_block);
    (void)t.flush(peer);  // whether it makes room or not, the wait knows
    sleep_for_room(t);
  }
}

inline void flush_patiently(transport& t, node_id peer) {
  while (!t.flush(peer)) sleep_for_room(t);
}

// A node has a sender until all is over: what it has flushed may not be out (UCX holds the end of
// it while a socket is full), and nobody else sees to that while no thread of the node receives.
class senders_stay {
 public:
  void until_over(transport& t) {
    while (!is_over_.load()) sleep_for_room(t);  // pairs with over()
  }
  void over(transport& t) {
    is_over_.store(true);  // pairs with until_over()
    t.wake_sender();
  }

 private:
  std::atomic<bool> is_over_{false};
};

// Two messages of node 0 to node 1 at once, as a stream writes them: what is large, and what comes
// after so many bytes.
inline constexpr std::size_t large_bytes = 4096;
inline void send_together(transport& node_0, std::span<const std::byte> both) {
  {
    const corked held(node_0, 1, both);
    for (const auto part : {both.first(large_bytes), both.subspan(large_bytes)}) {
      while (node_0.try_send(1, header_of(0, 1), {}, part) == send_outcome::would_block)
        std::this_thread::yield();
    }
  }
  (void)node_0.flush(1);
}

// A node's sender thread for tests that send from elsewhere.
class sender_thread {
 public:
  sender_thread(transport& t, node_id nodes)
      : transport_(t), thread_([this, nodes] {
          while (!stop_.load()) {
            sleep_for_room(transport_);
            for (node_id n = 0; n < nodes; ++n) {
              if (transport_.reaches(n)) (void)transport_.flush(n);
            }
          }
        }) {}
  ~sender_thread() {
    stop_.store(true);
    transport_.wake_sender();
    thread_.join();
  }

 private:
  transport& transport_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Checks that the messages of each node come in order, whole and unaltered.
class checking_receiver final : public receiver {
 public:
  explicit checking_receiver(node_id self,
                             std::function<std::size_t(std::size_t)> size = mixed_size)
      : self_(self), size_(std::move(size)) {}

  void on_message(const header& h, std::span<const std::byte> payload) override {
    const std::size_t index = received[h.source]++;
    ++total;
    ASSERT_EQ(h.destination, self_);
    ASSERT_EQ(h.length, payload.size());
    ASSERT_EQ(payload.size(), size_(index)) << "message " << index << " of node " << h.source;
    const auto expected = content(h.source, index, payload.size());
    ASSERT_EQ(payload.empty() ? 0 : std::memcmp(payload.data(), expected.data(), payload.size()), 0)
        << "message " << index << " of node " << h.source;
  }
  void on_lost(node_id peer, const std::string& why) override { lost[peer].push_back(why); }

  void receive_until(transport& t, const std::function<bool()>& done) {
    while (!done()) {
      if (t.poll(*this, 64) == 0 && !done()) sleep_for_messages(t);
    }
  }
  void receive(transport& t, std::size_t messages) {
    receive_until(t, [&] { return total >= messages; });
  }

  std::map<node_id, std::size_t> received;
  std::map<node_id, std::vector<std::string>> lost;
  std::size_t total = 0;

 private:
  node_id self_;
  std::function<std::size_t(std::size_t)> size_;
};

// Node 0 ends while small messages are under way: node 1 gets them all, and hears of the end after
// them.
template <class Transport>
void expect_all_before_the_end(std::unique_ptr<Transport>& node_0, transport& node_1,
                               checking_receiver& r) {
  constexpr std::size_t messages = 100;
  for (std::size_t m = 0; m < messages; ++m) {
    ASSERT_NE(node_0->try_send(1, header_of(0, 1), content(0, m, small_size(m)), {}),
              send_outcome::would_block);
  }
  node_0.reset();
  r.receive_until(node_1, [&] { return !r.lost.empty(); });
  EXPECT_EQ(r.total, messages);
}

// Many small messages in a row, while somebody else sees to what is staged.
inline void expect_few_writes_for_a_burst(transport& from, transport& to) {
  constexpr std::size_t messages = 50'000;
  const sender_thread flusher(from, 2);
  std::thread sender([&] {
    const auto bytes = content(0, 0, 64);
    for (std::size_t m = 0; m < messages;) {
      if (from.try_send(1, header_of(0, 1), bytes, {}) == send_outcome::would_block) {
        std::this_thread::yield();
      } else {
        ++m;
      }
    }
  });
  struct : receiver {
    void on_message(const header&, std::span<const std::byte>) override { ++total; }
    void on_lost(node_id, const std::string& why) override { FAIL() << why; }
    std::size_t total = 0;
  } r;
  while (r.total < messages) {
    if (to.poll(r, 64) == 0) sleep_for_messages(to);
  }
  sender.join();
  const auto t = from.counted();
  EXPECT_EQ(t.messages_out, messages);
  testing::Test::RecordProperty("writes", std::to_string(t.writes));
  testing::Test::RecordProperty("wakes", std::to_string(t.wakes));
  EXPECT_LT(t.writes, messages / 10);
  EXPECT_LT(t.wakes, messages / 10);
}

// Of nodes that would let a burst wait for ever.
template <class Transport>
void expect_collected_to_go_out(std::unique_ptr<Transport>& node_0, transport& node_1) {
  checking_receiver r(1, small_size);
  std::size_t sent = 0;
  const auto send_ten = [&] {
    const std::uint64_t writes = node_0->counted().writes;
    for (int i = 0; i < 10; ++i, ++sent) {
      ASSERT_NE(node_0->try_send(1, header_of(0, 1), content(0, sent, small_size(sent)), {}),
                send_outcome::lost);
    }
    EXPECT_LT(node_0->counted().writes, writes + 10);
  };
  send_ten();
  (void)node_0->flush(1);
  r.receive(node_1, sent);
  // Nothing is on its way any more.
  checking_receiver none(0);
  for (const std::int64_t end_ns = os::now_ns() + 5'000'000; os::now_ns() < end_ns;) {
    (void)node_0->poll(none, 64);
    (void)node_1.poll(r, 64);
  }
  send_ten();
  node_0.reset();
  r.receive(node_1, sent);
}

}  // namespace strata::net::test
