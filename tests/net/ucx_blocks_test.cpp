// SPDX-License-Identifier: Apache-2.0
// Transfers over UCX: blocks arrive whole and where they are expected, memory is left alone when
// its end has been told, whoever is lost meanwhile, and nobody from outside has a say in it.
#include <gtest/gtest.h>

#include <algorithm>

#include "net/ucx/reach_of_devices.hpp"
#include "ucx_blocks_support.hpp"

namespace strata::net::test {
namespace {

INSTANTIATE_TEST_SUITE_P(ucx, ucx_blocks, testing::Values("tcp", "all"), [](const auto& p) {
  return std::string(p.param == std::string("tcp") ? "sockets" : "any");
});

TEST_P(ucx_blocks, arrive_whole_whatever_their_size) {
  std::uint64_t number = 0;
  for (const std::size_t bytes :
       {1UL, 4096UL, 65'536UL, 131'071UL, 131'072UL, 131'073UL, 1UL << 20, (9UL << 20) + 5}) {
    for (const node_id taker : {0, 1}) {
      const auto giver = static_cast<node_id>(1 - taker);
      ++number;
      std::vector<std::byte> from = content_of(number, bytes);
      std::vector<std::byte> into(bytes);
      ASSERT_TRUE(of(*all_[taker]).expect(giver, number, into));
      ASSERT_TRUE(of(*all_[giver]).give(taker, number, from, number + 1000));
      poll_until([&] { return heard_[giver].given.contains(number + 1000); });
      std::fill(from.begin(), from.end(), std::byte{0xEE});
      poll_until([&] { return heard_[taker].arrived.contains(number); });
      EXPECT_TRUE(heard_[taker].arrived[number] && heard_[giver].given[number + 1000]);
      EXPECT_TRUE(strata::test::same(into, content_of(number, bytes))) << bytes;
    }
  }
  EXPECT_EQ(all_[0]->counted().bytes_out, all_[1]->counted().bytes_in);
}

// In both directions, between messages, and given in another order than expected.
TEST_P(ucx_blocks, many_at_once) {
  constexpr std::uint64_t many = 60;
  const auto size_of = [](std::uint64_t n) { return 1 + n * n * 1009 % 700'000; };
  std::vector<std::vector<std::byte>> from;
  std::vector<std::vector<std::byte>> into;
  for (std::uint64_t n = 0; n < many; ++n) {
    from.push_back(content_of(n, size_of(n)));
    into.emplace_back(size_of(n));
  }
  const auto taker_of = [](std::uint64_t n) { return static_cast<node_id>(n % 3); };
  const auto giver_of = [](std::uint64_t n) { return static_cast<node_id>((n + 1) % 3); };
  for (std::uint64_t n = 0; n < many; ++n)
    ASSERT_TRUE(of(*all_[taker_of(n)]).expect(giver_of(n), n, into[n]));
  std::size_t sent = 0;
  for (std::uint64_t n = many; n-- > 0;) {
    ASSERT_TRUE(of(*all_[giver_of(n)]).give(taker_of(n), n, from[n], n));
    const header h = header_of(giver_of(n), taker_of(n));
    sent += all_[giver_of(n)]->try_send(taker_of(n), h, content(0, n, 100), {}) !=
            send_outcome::would_block;
  }
  poll_until([&] {
    std::size_t ended = 0, messages = 0;
    for (const ends& e : heard_) {
      ended += e.arrived.size() + e.given.size();
      messages += e.messages;
    }
    return ended == 2 * many && messages == sent;
  });
  for (std::uint64_t n = 0; n < many; ++n) {
    EXPECT_TRUE(heard_[taker_of(n)].arrived.at(n) && heard_[giver_of(n)].given.at(n));
    EXPECT_TRUE(into[n] == from[n]) << "block " << n;
  }
}

// Nobody polls unless something wakes him.
TEST_P(ucx_blocks, wake_who_sleeps) {
  const sender_thread first(*all_[0], 2);
  const sender_thread second(*all_[1], 2);
  constexpr std::uint64_t rounds = 40;
  constexpr std::size_t bytes = 300'000;
  std::vector<std::byte> into(bytes);
  const auto receive = [&](node_id n, const std::function<bool()>& done) {
    while (!done()) {
      if (all_[n]->poll(heard_[n], 64) == 0 && !done()) sleep_for_messages(*all_[n]);
    }
  };
  std::thread taker([&] {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      ASSERT_TRUE(of(*all_[1]).expect(0, i, into));
      ASSERT_NE(all_[1]->try_send(0, header_of(1, 0), {}, {}), send_outcome::lost);
      receive(1, [&] { return heard_[1].arrived.contains(i); });
      ASSERT_TRUE(strata::test::same(into, content_of(i, bytes)));
    }
  });
  for (std::uint64_t i = 0; i < rounds; ++i) {
    receive(0, [&] { return heard_[0].messages > i; });
    const std::vector<std::byte> from = content_of(i, bytes);
    ASSERT_TRUE(of(*all_[0]).give(1, i, from, i));
    receive(0, [&] { return heard_[0].given.contains(i); });
  }
  taker.join();
}

TEST_P(ucx_blocks, that_are_withdrawn_never_begin) {
  std::vector<std::byte> into(200'000, std::byte{1});
  const std::vector<std::byte> from = content_of(1, into.size());
  ASSERT_TRUE(of(*all_[0]).expect(1, 5, into));
  EXPECT_TRUE(of(*all_[0]).withdraw(1, 5));
  EXPECT_FALSE(of(*all_[0]).withdraw(1, 5));
  ASSERT_TRUE(of(*all_[1]).give(0, 5, from, 6));
  poll_until([&] { return heard_[1].given.contains(6); });
  EXPECT_TRUE(strata::test::all_are(std::byte{1}, into));
  EXPECT_TRUE(heard_[0].arrived.empty());
  // It is as if nothing had been: the next one comes.
  ASSERT_TRUE(of(*all_[0]).expect(1, 7, into));
  ASSERT_TRUE(of(*all_[1]).give(0, 7, from, 8));
  poll_until([&] { return heard_[0].arrived.contains(7); });
  EXPECT_TRUE(into == from);
  EXPECT_TRUE(heard_[0].lost.empty() && heard_[1].lost.empty());
}

// ---- losses ----

// So much that no socket holds it.
constexpr std::size_t too_much = std::size_t{48} << 20;

// The memory is not touched after its end, whatever the others still do.
void expect_left_alone(ucx_nodes& all, std::vector<ends>& heard, std::vector<std::byte>& memory) {
  std::fill(memory.begin(), memory.end(), std::byte{0x55});
  for (int i = 0; i < 3000; ++i) {
    for (std::size_t n = 0; n < all.size(); ++n) {
      if (all[n] != nullptr) (void)all[n]->poll(heard[n], 64);
    }
  }
  EXPECT_TRUE(strata::test::all_are(std::byte{0x55}, memory));
}

TEST_P(ucx_blocks, end_with_a_lost_giver) {
  std::vector<std::byte> into(too_much);
  std::vector<std::byte> later(1000);
  const std::vector<std::byte> from = content_of(1, too_much);
  ASSERT_TRUE(of(*all_[0]).expect(1, 1, into));
  ASSERT_TRUE(of(*all_[0]).expect(1, 2, later));  // never begins
  ASSERT_TRUE(of(*all_[1]).give(0, 1, from, 1));
  poll_until([&] { return into[100'000] == from[100'000]; });
  EXPECT_TRUE(heard_[0].arrived.empty());
  all_[1].reset();
  poll_until([&] { return heard_[0].arrived.size() == 2 && !heard_[0].lost.empty(); });
  EXPECT_FALSE(heard_[0].arrived[1]);
  EXPECT_FALSE(heard_[0].arrived[2]);
  EXPECT_FALSE(of(*all_[0]).expect(1, 3, later));
  EXPECT_FALSE(of(*all_[0]).give(1, 4, later, 4));
  expect_left_alone(all_, heard_, into);
}

TEST_P(ucx_blocks, end_with_a_lost_taker) {
  std::vector<std::byte> from = content_of(1, too_much);
  {
    std::vector<std::byte> into(too_much);
    ASSERT_TRUE(of(*all_[1]).expect(0, 1, into));
    ASSERT_TRUE(of(*all_[0]).give(1, 1, from, 1));
    ASSERT_TRUE(of(*all_[0]).give(1, 2, from, 2));  // that it does not expect yet
    poll_until([&] { return into[100'000] == from[100'000]; });
    all_[1].reset();
  }
  poll_until([&] { return heard_[0].given.size() == 2 && !heard_[0].lost.empty(); });
  EXPECT_FALSE(heard_[0].given[1]);
  expect_left_alone(all_, heard_, from);
}

// It is there, but does not answer any more.
TEST_P(ucx_blocks, end_with_a_peer_that_is_dropped) {
  std::vector<std::byte> into(too_much);
  std::vector<std::byte> to_silence = content_of(3, too_much);
  std::vector<std::byte> of_silence(too_much);
  const std::vector<std::byte> from = content_of(1, too_much);
  ASSERT_TRUE(of(*all_[0]).expect(1, 1, into));
  ASSERT_TRUE(of(*all_[1]).expect(0, 2, of_silence));
  ASSERT_TRUE(of(*all_[1]).give(0, 1, from, 1));
  ASSERT_TRUE(of(*all_[0]).give(1, 2, to_silence, 2));
  poll_until([&] { return into[100'000] == from[100'000]; });
  const auto poll_first = [&] { (void)all_[0]->poll(heard_[0], 64); };
  all_[0]->drop(1);
  while (heard_[0].arrived.empty() || heard_[0].given.empty()) poll_first();
  EXPECT_FALSE(heard_[0].arrived[1]);
  EXPECT_FALSE(heard_[0].given[2]);
  EXPECT_TRUE(heard_[0].lost.empty()) << "who is dropped is no news";
  expect_left_alone(all_, heard_, into);  // though node 1 goes on
  expect_left_alone(all_, heard_, to_silence);
  poll_until([&] { return heard_[1].given.contains(1) && heard_[1].arrived.contains(2); });
}

TEST_P(ucx_blocks, may_be_under_way_at_the_end) {
  std::vector<std::byte> into(too_much);
  const std::vector<std::byte> from = content_of(1, too_much);
  ASSERT_TRUE(of(*all_[0]).expect(1, 1, into));
  ASSERT_TRUE(of(*all_[1]).give(0, 1, from, 1));
  poll_until([&] { return into[100'000] == from[100'000]; });
  all_.clear();
}

// ---- who is believed ----

TEST_P(ucx_blocks, of_strangers_are_not_taken) {
  std::vector<std::byte> into(200'000, std::byte{1});
  const std::vector<std::byte> other(into.size(), std::byte{2});
  ASSERT_TRUE(of(*all_[0]).expect(1, 5, into));
  stranger s(all_[0]->address().worker);
  s.meanwhile = [&] { (void)all_[0]->poll(heard_[0], 64); };
  const ucx::block_head guess{head_of(1, 0, 0, 0, 0x0123'4567'89AB'CDEF), 5};
  for (const std::uint32_t how : {UCP_AM_SEND_FLAG_RNDV, UCP_AM_SEND_FLAG_EAGER}) {
    s.send_active(4, &guess, sizeof guess, other, how);
    s.send_active(4, &guess, sizeof guess - 1, other, how);
    s.send_active(4, nullptr, 0, other, how);
  }
  EXPECT_TRUE(strata::test::all_are(std::byte{1}, into));
  EXPECT_TRUE(heard_[0].arrived.empty() && heard_[0].lost.empty());
  EXPECT_TRUE(of(*all_[0]).withdraw(1, 5));
}

TEST_P(ucx_blocks, of_another_size_lose_their_giver) {
  std::vector<std::byte> into(200'000);
  const std::vector<std::byte> larger(into.size() + 1);
  ASSERT_TRUE(of(*all_[0]).expect(1, 5, into));
  ASSERT_TRUE(of(*all_[1]).give(0, 5, larger, 5));
  poll_until([&] { return heard_[0].arrived.contains(5) && !heard_[0].lost.empty(); });
  EXPECT_FALSE(heard_[0].arrived[5]);
  EXPECT_EQ(heard_[0].lost[1], "sent a malformed block");
}

// ---- when ----

TEST(ucx_rendezvous, is_left_where_only_sockets_are) {
  const over network("tcp");
  const auto all = open_all(2);
  EXPECT_EQ(all[0]->transfers_of_peers()->bytes_min(1), transfers::never);
  EXPECT_EQ(all[0]->transfers_of_peers()->bytes_min(9), transfers::never);
  const auto none = open_all(2, [](ucx::settings& s) { s.transfers = ucx::rendezvous::never; });
  EXPECT_EQ(none[0]->transfers_of_peers(), nullptr);
}

// The kernel reads the other process's memory, which counts as a device; but UCX does not use that
// where it is to notice lost peers.
TEST(ucx_rendezvous, is_used_where_memory_is_reached) {
  const over network("posix,cma,tcp");
  const auto all = open_all(1);
  const stranger s(all[0]->address().worker);
  EXPECT_TRUE(ucx::devices_read_memory(ucx::ucp_library::get(), s.endpoint()));
}

}  // namespace
}  // namespace strata::net::test
