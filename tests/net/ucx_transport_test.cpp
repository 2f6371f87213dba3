// SPDX-License-Identifier: Apache-2.0
// The promises of every transport, kept over UCX; and what is said of UCX alone: who is believed,
// and in which order.
#include "net/ucx/ucx_transport.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "../common/denied_calls.hpp"
#include "../common/thread_asleep.hpp"
#include "addressed_suite.hpp"
#include "net/ucx/arrivals.hpp"
#include "net/ucx/in_order.hpp"
#include "strata/error.hpp"
#include "transport_suite.hpp"
#include "ucx_support.hpp"

namespace strata::net::test {
namespace {

using ucx::ucx_transport;
using transports = std::vector<std::unique_ptr<transport>>;

transport_maker maker(const char* name, const char* tls) {
  return {name, [tls](node_id nodes, bool small_buffers) {
            const over network(tls);
            transports all;
            for (auto& t : open_all(nodes, small_buffers ? 16384 : 0)) all.push_back(std::move(t));
            return all;
          }};
}

INSTANTIATE_TEST_SUITE_P(ucx, transport_suite,
                         testing::Values(maker("sockets", "tcp"), maker("any", "all")), name_of);

INSTANTIATE_TEST_SUITE_P(ucx, addressed_suite,
                         testing::Values(addressed_maker{
                             "sockets", [](node_id self, node_id nodes) {
                               const over network("tcp");
                               return std::make_unique<ucx_transport>(settings_of(self, nodes));
                             }}));

// ---- who is believed ----

TEST(ucx_transport, strangers_are_not_heard) {
  const over network("tcp");
  auto all = open_all(2);
  checking_receiver r(0, small_size);
  stranger s(all[0]->address().worker);
  s.meanwhile = [&] { (void)all[0]->poll(r, 64); };
  for (unsigned id = 0; id < 6; ++id) {
    const auto guess = head_of(1, 0, 1, 64, 0x0123'4567'89AB'CDEF);
    s.send(id, &guess, sizeof guess, 64);
    s.send(id, &guess, sizeof guess, 1'000'000);
    s.send(id, &guess, 7, 0);
    s.send(id, nullptr, 0, 0);
    const auto nobody = head_of(9999, 0, 1, 64, 0);
    s.send(id, &nobody, sizeof nobody, 64);
    s.send(id, &guess, sizeof guess, 1'000'000, UCP_AM_SEND_FLAG_RNDV);
  }
  send_patiently(*all[1], 1, 0, content(1, 0, 64));
  r.receive(*all[0], 1);
  EXPECT_EQ(r.total, 1u);
  EXPECT_TRUE(r.lost.empty());
}

TEST(ucx_transport, a_node_that_sends_nonsense_is_lost) {
  const over network("tcp");
  const std::uint64_t pass = ucx::pass_of(settings_of(0, 2).key, 42, 1, 0);
  const std::vector<std::pair<ucx::wire_head, std::size_t>> nonsense = {
      {head_of(1, 0, 1, 65, pass), 64},                                         // another length
      {head_of(1, 1, 1, 64, pass), 64},                                         // for somebody else
      {head_of(1, 0, 0, 64, pass), 64},                                         // once more
      {head_of(1, 0, 1U << 31, 64, pass), 64},                                  // from far ahead
      {head_of(1, 0, 1, payload_bytes_max + 1, pass), payload_bytes_max + 1}};  // too much
  for (const unsigned id : {0U, 5U}) {  // alone, and in a batch
    for (const auto& [head, bytes] : nonsense) {
      auto all = open_all(2);
      checking_receiver r(0, small_size);
      stranger s(all[0]->address().worker);
      s.meanwhile = [&] { (void)all[0]->poll(r, 64); };
      s.send(id, &head, sizeof head, bytes);
      r.receive_until(*all[0], [&] { return !r.lost.empty(); });
      EXPECT_EQ(r.total, 0u);
      EXPECT_EQ(r.lost[1][0].rfind("sent a m", 0), 0u) << r.lost[1][0];
    }
  }
}

TEST(ucx_transport, of_a_batch_what_comes_before_nonsense_counts) {
  const over network("tcp");
  auto all = open_all(2);
  const std::uint64_t pass = ucx::pass_of(settings_of(0, 2).key, 42, 1, 0);
  std::vector<std::byte> batch;
  const auto add = [&](const auto& from, std::size_t bytes) {
    const auto* const first = reinterpret_cast<const std::byte*>(from);
    batch.insert(batch.end(), first, first + bytes);
  };
  const auto whole = head_of(1, 0, 1, 64, pass);
  const auto cut = head_of(1, 0, 2, 64, pass);
  const auto payload = content(1, 0, 64);
  add(&whole, sizeof whole);
  add(payload.data(), payload.size());
  add(&cut, sizeof cut);
  add(payload.data(), 10);
  checking_receiver r(0, small_size);
  stranger s(all[0]->address().worker);
  s.meanwhile = [&] { (void)all[0]->poll(r, 64); };
  s.send(5, batch.data(), batch.size(), 0);
  r.receive_until(*all[0], [&] { return !r.lost.empty(); });
  EXPECT_EQ(r.total, 1u);
  EXPECT_EQ(r.lost[1][0], "sent a malformed header");
}

TEST(ucx_transport, a_node_with_another_key_does_not_join) {
  const over network("tcp");
  std::vector<std::unique_ptr<ucx_transport>> all;
  std::vector<launch::address> directory;
  for (node_id n = 0; n < 2; ++n) {
    ucx::settings s = settings_of(n, 2);
    s.key[0] = static_cast<std::uint8_t>(n);
    all.push_back(std::make_unique<ucx_transport>(s));
    directory.push_back(all.back()->address());
  }
  std::thread other(
      [&] { EXPECT_THROW(all[1]->connect(directory, os::now_ns() + 300'000'000), strata::error); });
  try {
    all[0]->connect(directory, os::now_ns() + 300'000'000);
    ADD_FAILURE();
  } catch (const strata::error& e) {
    EXPECT_NE(std::string(e.what()).find("node 1"), std::string::npos) << e.what();
  }
  other.join();
}

TEST(ucx_transport, passes_differ_by_all_that_they_vouch_for) {
  launch::job_key key{};
  launch::job_key other{};
  other[31] = 1;
  const std::vector<std::uint64_t> all = {ucx::pass_of(key, 1, 0, 1), ucx::pass_of(key, 1, 1, 0),
                                          ucx::pass_of(key, 2, 0, 1), ucx::pass_of(key, 1, 0, 2),
                                          ucx::pass_of(other, 1, 0, 1)};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]);
  }
  EXPECT_EQ(all[0], ucx::pass_of(key, 1, 0, 1));
}

// ---- bursts ----

TEST(ucx_transport, a_burst_costs_few_writes_and_hardly_a_wake) {
  const over network("tcp");
  auto all = open_all(2, [](ucx::settings& s) {
    s.burst_gap_ns = 1'000'000'000;  // a slow machine sends slowly
    s.flush_deadline_ns = 10'000'000;
  });
  expect_few_writes_for_a_burst(*all[0], *all[1]);
}

TEST(ucx_transport, what_comes_after_a_burst_does_not_overtake_it) {
  const over network("tcp");
  auto all = open_all(2, [](ucx::settings& s) {
    s.burst_gap_ns = 30'000'000'000;
    s.flush_deadline_ns = 60'000'000'000;
  });
  // The last is too large for a batch, and sends the one before it on its way.
  constexpr std::size_t messages = 20;
  const auto size = [](std::size_t m) { return m + 1 < messages ? m : std::size_t{5000}; };
  for (std::size_t m = 0; m < messages; ++m)
    ASSERT_NE(all[0]->try_send(1, header_of(0, 1), content(0, m, size(m)), {}), send_outcome::lost);
  EXPECT_EQ(all[0]->counted().writes, 5u);
  checking_receiver r(1, size);
  r.receive(*all[1], messages);
}

TEST(ucx_transport, what_is_collected_goes_out_when_it_is_flushed_or_the_node_leaves) {
  const over network("tcp");
  auto all = open_all(2, [](ucx::settings& s) {
    s.burst_gap_ns = 30'000'000'000;
    s.flush_deadline_ns = 60'000'000'000;
  });
  expect_collected_to_go_out(all[0], *all[1]);
}

// ---- the order ----

TEST(ucx_order, early_ones_wait_for_those_before_them) {
  ucx::in_order order;
  const auto keep = [&](std::uint32_t sequence) {
    header h{};
    h.sequence = sequence;
    return order.keep(0, h, std::as_bytes(std::span(&sequence, 1)));
  };
  EXPECT_TRUE(order.is_next(0));
  EXPECT_TRUE(keep(2));
  EXPECT_TRUE(keep(1));
  EXPECT_FALSE(keep(2)) << "twice";
  EXPECT_FALSE(keep(0)) << "it is next, not early";
  EXPECT_FALSE(order.take().has_value());
  order.advance();
  for (const std::uint32_t sequence : {1U, 2U}) {
    auto e = order.take();
    ASSERT_TRUE(e.has_value());
    EXPECT_EQ(e->h.sequence, sequence);
    EXPECT_EQ(e->payload.size(), sizeof sequence);
    order.advance();
  }
  EXPECT_FALSE(order.take().has_value());
  EXPECT_FALSE(keep(1)) << "it came before";
}

TEST(ucx_order, no_more_waits_than_an_honest_peer_sends) {
  ucx::in_order order;
  const std::vector<std::byte> payload(payload_bytes_max);
  std::size_t kept = 0;
  for (header h{};; ++kept) {
    ASSERT_LT(kept, 100'000u);
    ++h.sequence;
    if (!order.keep(0, h, payload)) break;
  }
  EXPECT_GE(kept * payload.size(), ucx::in_order::early_bytes_max / 2);
  EXPECT_LE(kept * payload.size(), ucx::in_order::early_bytes_max);
}

// ---- what UCX holds ----

// UCX calls sent what it has copied, also where the socket takes nothing. The receiver, which
// sleeps until it does, has other things to do then.
TEST(ucx_transport, what_is_held_goes_out_though_the_receiver_slept_and_does_not_poll) {
  const over network("tcp");
  auto all = open_all(2);
  std::atomic<pid_t> receiver{0};
  std::atomic<bool> is_over{false};
  std::thread receives([&] {
    receiver = ::gettid();
    checking_receiver none(0);
    while (!is_over) {
      (void)all[0]->poll(none, 64);
      sleep_for_messages(*all[0]);
    }
  });
  while (receiver == 0 || !strata::test::sleeps(receiver)) std::this_thread::yield();
  bool is_full = false;
  send_outcome outcome = send_outcome::lost;
  // To this thread.
  std::thread worker([&] {
    is_full = strata::test::deny_calls({SYS_sendto, SYS_sendmsg}, EAGAIN);
    is_over = true;
    outcome = all[0]->try_send(1, header_of(0, 1), content(0, 0, 64), {});
  });
  worker.join();
  all[0]->wake_receiver();
  receives.join();
  if (!is_full) GTEST_SKIP() << "this system has no filters for system calls";
  EXPECT_EQ(outcome, send_outcome::sent);
  std::thread sender([&] { sleep_for_room(*all[0]); });
  checking_receiver r(1, small_size);
  r.receive(*all[1], 1);
  all[0]->wake_sender();
  sender.join();
}

// ---- what waits for who polls ----

TEST(ucx_arrivals, empty_ones_take_memory_too) {
  ucx::arrivals waiting;
  EXPECT_EQ(waiting.bytes(), 0U);
  constexpr std::size_t messages = 100'000;
  for (std::size_t m = 0; m < messages; ++m) waiting.copy(header_of(0, 1), {});
  EXPECT_GE(waiting.bytes(), messages * sizeof(header));
  waiting.clear();
  EXPECT_EQ(waiting.bytes(), 0U);
}

// ---- how it ends ----

TEST(ucx_transport, what_is_under_way_arrives_before_the_end) {
  const over network("tcp");
  auto all = open_all(2);
  checking_receiver r(1, small_size);
  expect_all_before_the_end(all[0], *all[1], r);
  EXPECT_EQ(r.lost[0][0], "has left");
}

// Large messages are read by UCX where they are until the socket has taken them.
TEST(ucx_transport, a_peer_is_lost_while_large_messages_are_under_way) {
  const over network("tcp");
  for (int round = 0; round < 5; ++round) {
    auto all = open_all(2, std::size_t{16} << 20);
    const std::vector<std::byte> payload(payload_bytes_max);
    std::size_t messages = 0;
    while (all[0]->try_send(1, header_of(0, 1), payload, {}) != send_outcome::would_block)
      ASSERT_LT(++messages, 10'000u);
    struct : receiver {
      void on_message(const header&, std::span<const std::byte>) override { ++total; }
      void on_lost(node_id, const std::string&) override {}
      std::size_t total = 0;
    } r;
    while (r.total == 0) (void)all[1]->poll(r, 1);
    all[1].reset();
    checking_receiver mine(0);
    mine.receive_until(*all[0], [&] { return !mine.lost.empty(); });
    EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), {}, {}), send_outcome::lost);
  }
}

TEST(ucx_transport, a_peer_is_lost_while_a_batch_waits) {
  const over network("tcp");
  for (const bool dropped : {true, false}) {
    auto all = open_all(2, [](ucx::settings& s) {
      s.burst_gap_ns = 30'000'000'000;
      s.flush_deadline_ns = 60'000'000'000;
    });
    for (std::size_t m = 0; m < 10; ++m)
      (void)all[0]->try_send(1, header_of(0, 1), content(0, m, 64), {});
    if (dropped) {
      all[0]->drop(1);
    } else {
      all[1].reset();
      checking_receiver r(0);
      r.receive_until(*all[0], [&] { return !r.lost.empty(); });
    }
    EXPECT_TRUE(all[0]->flush(1));
    EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), {}, {}), send_outcome::lost);
  }
}

TEST(ucx_transport, devices_have_names_and_others_are_refused) {
  const over network("tcp");
  ucx::settings s = settings_of(0, 1);
  s.devices = "no-such-device";
  EXPECT_THROW(ucx_transport{s}, strata::error);
}

}  // namespace
}  // namespace strata::net::test
