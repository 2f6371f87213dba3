// SPDX-License-Identifier: Apache-2.0
// The promises of every transport, kept by TCP in each of its configurations; and what is said of
// TCP alone: when it writes, and how often it wakes.
#include "net/tcp/tcp_transport.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "net/corked.hpp"
#include "stand_in_suite.hpp"
#include "tcp_pair.hpp"
#include "transport_suite.hpp"

namespace strata::net::test {
namespace {

using tcp::tcp_transport;
using transports = std::vector<std::unique_ptr<transport>>;

transports make_tcp(node_id nodes, const tcp::options& o) {
  auto connected = tcp_net(nodes, o.socket_buffer_bytes);
  transports all;
  for (node_id n = 0; n < nodes; ++n) {
    all.push_back(std::make_unique<tcp_transport>(n, std::move(connected[n]), o));
  }
  return all;
}

transport_maker maker(const char* name, const std::function<void(tcp::options&)>& change) {
  tcp::options o;
  change(o);
  return {name, [o](node_id nodes, bool small_buffers) {
            tcp::options used = o;
            if (small_buffers) used.socket_buffer_bytes = 8192;
            return make_tcp(nodes, used);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    tcp, transport_suite,
    testing::Values(
        maker("by_default", [](tcp::options&) {}),
        maker("epoll", [](tcp::options& o) { o.mechanism = tcp::poll_mechanism::epoll; }),
        maker("poll", [](tcp::options& o) { o.mechanism = tcp::poll_mechanism::poll; }),
        maker("select", [](tcp::options& o) { o.mechanism = tcp::poll_mechanism::select; }),
        maker("blocking", [](tcp::options& o) { o.io = tcp::io_mode::blocking; }),
        maker("not_aggregated", [](tcp::options& o) { o.aggregate = false; }),
        maker("little_staging", [](tcp::options& o) { o.staging_bytes = 0; })),
    name_of);

INSTANTIATE_TEST_SUITE_P(tcp, stand_in_suite,
                         testing::Values(maker("by_default", [](tcp::options&) {}),
                                         maker("poll",
                                               [](tcp::options& o) {
                                                 o.mechanism = tcp::poll_mechanism::poll;
                                               })),
                         name_of);

TEST(tcp_transport, a_lone_message_is_written_by_its_sender) {
  auto all = make_tcp(2, {});
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), content(0, 0, 64), {}), send_outcome::sent);
  checking_receiver r(1, small_size);
  r.receive(*all[1], 1);
  EXPECT_EQ(all[0]->counted().writes, 1u);
  EXPECT_EQ(all[0]->counted().wakes, 0u);
}

// Both ends, in each configuration: nothing of the old connection arrives, and the numbers of the
// messages begin anew.
TEST(tcp_transport, a_connection_takes_the_place_of_one_that_has_ended) {
  tcp::options polls, blocks;
  polls.mechanism = tcp::poll_mechanism::poll;
  blocks.io = tcp::io_mode::blocking;
  for (const tcp::options& o : {tcp::options{}, polls, blocks}) {
    auto all = make_tcp(3, o);
    const auto at = [&](node_id n) -> tcp_transport& {
      return static_cast<tcp_transport&>(*all[n]);
    };
    for (int round = 0; round < 3; ++round) {
      checking_receiver r(1, small_size);
      for (std::size_t i = 0; i < 10; ++i) send_patiently(at(0), 0, 1, content(0, i, 64));
      flush_patiently(at(0), 1);
      r.receive(at(1), 10);
      // What is under way when it ends is gone.
      send_patiently(at(0), 0, 1, content(0, 99, 64));
      at(0).drop(1);
      EXPECT_EQ(at(0).try_send(1, header_of(0, 1), content(0, 0, 64), {}), send_outcome::lost);
      at(1).drop(0);
      // Whoever looks at once, or never did.
      if (round != 0) at(1).poll(r, 100);
      auto [first, second] = tcp_pair(o.socket_buffer_bytes);
      EXPECT_TRUE(at(0).restart(1, std::move(first)));
      EXPECT_TRUE(at(1).restart(0, std::move(second)));
      EXPECT_EQ(r.total, 10U);
      EXPECT_TRUE(r.lost.empty());
    }
    // The others have noticed nothing.
    checking_receiver r(2, small_size);
    send_patiently(at(0), 0, 2, content(0, 0, 64));
    flush_patiently(at(0), 2);
    r.receive(at(2), 1);
  }
}

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

// More may come and go than a process may have descriptors.
TEST(tcp_transport, nothing_is_left_of_peers_that_have_gone) {
  tcp::options blocks;
  blocks.io = tcp::io_mode::blocking;
  constexpr node_id numbers = 20;
  for (const tcp::options& o : {tcp::options{}, blocks}) {
    tcp_transport t(0, std::vector<os::descriptor>(numbers), o);
    const std::ptrdiff_t before = open_descriptors();
    checking_receiver r(0, small_size);
    for (node_id n = 1; n < numbers; ++n) {
      auto [mine, theirs] = tcp_pair();
      t.admit(n, std::move(mine));
      send_patiently(t, 0, n, content(0, 0, 64));
      if (n % 2 == 0) t.drop(n);
      theirs.reset();
      if (n % 2 != 0)
        r.receive_until(t, [&, n = n] { return r.lost.contains(n); });
      else
        (void)t.poll(r, 64);
      EXPECT_EQ(t.try_send(n, header_of(0, n), content(0, 1, 64), {}), send_outcome::lost);
      EXPECT_TRUE(t.flush(n));
      EXPECT_EQ(open_descriptors(), before) << n;
    }
    EXPECT_EQ(r.lost.size(), numbers / 2U);
  }
}

// Who is about to write into a socket finds no other one in its place.
TEST(tcp_transport, a_socket_stays_until_nobody_writes_into_it) {
  tcp_transport t(0, std::vector<os::descriptor>(3), {});
  const std::ptrdiff_t before = open_descriptors();
  checking_receiver r(0, small_size);
  auto [mine, theirs] = tcp_pair();
  t.admit(1, std::move(mine));
  const std::vector<std::byte> piece(20'000);
  {
    const corked together(t, 1, piece);
    EXPECT_EQ(t.try_send(1, header_of(0, 1), {}, piece), send_outcome::staged);
    t.drop(1);
    (void)t.poll(r, 64);
    EXPECT_EQ(open_descriptors(), before + 2);  // and that of the other end
  }
  auto [next, others] = tcp_pair();
  t.admit(2, std::move(next));
  EXPECT_EQ(open_descriptors(), before + 3);
}

TEST(tcp_transport, a_burst_costs_few_writes_and_hardly_a_wake) {
  tcp::options o;
  o.burst_gap_ns = 1'000'000'000;  // a slow machine sends slowly
  o.flush_deadline_ns = 10'000'000;
  auto all = make_tcp(2, o);
  expect_few_writes_for_a_burst(*all[0], *all[1]);
}

TEST(tcp_transport, without_aggregation_each_message_is_a_write) {
  tcp::options o;
  o.aggregate = false;
  auto all = make_tcp(2, o);
  const auto bytes = content(0, 0, 64);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(all[0]->try_send(1, header_of(0, 1), bytes, {}), send_outcome::sent);
  }
  EXPECT_EQ(all[0]->counted().writes, 100u);
}

TEST(tcp_transport, in_blocking_mode_the_sender_thread_writes) {
  tcp::options o;
  o.io = tcp::io_mode::blocking;
  auto all = make_tcp(2, o);
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), content(0, 0, 64), {}), send_outcome::staged);
  EXPECT_EQ(all[0]->counted().writes, 0u);
  sleep_for_room(*all[0]);
  EXPECT_TRUE(all[0]->flush(1));
  checking_receiver r(1, small_size);
  r.receive(*all[1], 1);
}

TEST(tcp_transport, pieces_leave_together_while_their_peer_is_corked) {
  auto all = make_tcp(2, {});
  const std::vector<std::byte> piece(20'000);
  const auto send = [&](std::span<const std::byte> bytes) {
    return all[0]->try_send(1, header_of(0, 1), bytes, {});
  };
  {
    const corked together(*all[0], 1, {});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(send(piece), send_outcome::staged);
    EXPECT_EQ(all[0]->counted().writes, 0u);
  }
  EXPECT_EQ(all[0]->counted().writes, 1u);
  // What is small goes at once, and takes along what is there.
  const corked again(*all[0], 1, {});
  EXPECT_EQ(send(piece), send_outcome::staged);
  EXPECT_EQ(send(content(0, 0, 64)), send_outcome::sent);
  EXPECT_EQ(all[0]->counted().writes, 2u);
  // As does what another thread sends, who has corked nothing.
  EXPECT_EQ(send(piece), send_outcome::staged);
  std::thread([&] { EXPECT_EQ(send(piece), send_outcome::sent); }).join();
  EXPECT_GT(all[0]->counted().writes, 2u);
}

TEST(tcp_transport, without_aggregation_a_cork_keeps_nothing_back) {
  tcp::options o;
  o.aggregate = false;
  auto all = make_tcp(2, o);
  const corked together(*all[0], 1, {});
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), content(0, 0, 20'000), {}), send_outcome::sent);
}

TEST(tcp_transport, a_peer_may_be_dropped_while_it_is_corked) {
  auto all = make_tcp(2, {});
  const std::vector<std::byte> piece(20'000);
  const corked together(*all[0], 1, {});
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), piece, {}), send_outcome::staged);
  all[0]->drop(1);
  EXPECT_EQ(all[0]->try_send(1, header_of(0, 1), piece, {}), send_outcome::lost);
  EXPECT_TRUE(all[0]->flush(1));
}

TEST(tcp_transport, pieces_of_what_lasts_are_not_copied_before_they_leave) {
  auto all = make_tcp(2, {});
  std::vector<std::byte> whole(100'000);
  const auto piece = std::span(whole).first(20'000);
  const auto send = [&](std::span<const std::byte> bytes) {
    return all[0]->try_send(1, header_of(0, 1), {}, bytes);
  };
  {
    const corked together(*all[0], 1, whole);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(send(piece), send_outcome::staged);
    // The last piece may be small.
    EXPECT_EQ(send(std::span(whole).last(100)), send_outcome::staged);
    // Nobody can write before them, and there is nothing that a sender thread could do.
    std::thread([&] { EXPECT_EQ(send(content(0, 0, 64)), send_outcome::staged); }).join();
    EXPECT_TRUE(all[0]->flush(1));
    EXPECT_EQ(all[0]->counted().writes, 0u);
    std::fill(whole.begin(), whole.end(), std::byte{7});
  }
  EXPECT_EQ(all[0]->counted().writes, 2u);  // theirs, and what came behind them
  struct : receiver {
    void on_message(const header&, std::span<const std::byte> payload) override {
      if (payload.size() == 20'000) sevens += std::ranges::count(payload, std::byte{7});
      ++total;
    }
    void on_lost(node_id, const std::string& why) override { FAIL() << why; }
    std::ptrdiff_t sevens = 0;
    int total = 0;
  } r;
  while (r.total < 5) {
    if (all[1]->poll(r, 64) == 0) sleep_for_messages(*all[1]);
  }
  EXPECT_EQ(r.sevens, 60'000);
}

// One thread sends small messages, others pieces between them, with and without a cork, some of
// what lasts; each thread's come in order, and the last of them come although nobody sends behind
// them.
void send_from_threads(const tcp::options& o) {
  static constexpr std::uint32_t threads = 3, rounds = 200;
  static constexpr std::size_t large = 64'000;
  auto all = make_tcp(2, o);
  const sender_thread flusher(*all[0], 2);
  std::atomic<bool> failed{false};
  const auto send = [&](std::uint32_t t, std::uint32_t i, std::span<std::byte> bytes) {
    std::memcpy(bytes.data(), &t, sizeof t);
    std::memcpy(bytes.data() + sizeof t, &i, sizeof i);
    while (all[0]->try_send(1, header_of(0, 1), {}, bytes) == send_outcome::would_block && !failed)
      std::this_thread::yield();
  };
  std::vector<std::thread> senders;
  for (std::uint32_t t = 0; t < threads; ++t) {
    senders.emplace_back([&, t] {
      const std::size_t bytes = t == 0 ? 64 : large;
      std::vector<std::byte> whole(5 * bytes);
      for (std::uint32_t i = 0; i < rounds; i += 5) {
        const bool lasts = i % 2 != 0;
        std::optional<corked> together;
        if (t != 0 && i % 3 != 0)
          together.emplace(*all[0], 1, std::span(whole).first(lasts ? whole.size() : 0));
        for (std::uint32_t n = 0; n < 5; ++n)
          send(t, i + n, std::span(whole).subspan(lasts ? n * bytes : 0, bytes));
      }
    });
  }
  struct : receiver {
    void on_message(const header&, std::span<const std::byte> payload) override {
      std::uint32_t t = 0, i = 0;
      ASSERT_GE(payload.size(), 64u);
      std::memcpy(&t, payload.data(), sizeof t);
      std::memcpy(&i, payload.data() + sizeof t, sizeof i);
      ASSERT_LT(t, threads);
      EXPECT_EQ(payload.size(), t == 0 ? 64u : large);
      EXPECT_EQ(i, next[t]++);
      ++total;
    }
    void on_lost(node_id, const std::string& why) override { FAIL() << why; }
    std::array<std::uint32_t, threads> next{};
    std::size_t total = 0;
  } r;
  while (r.total < threads * rounds && !testing::Test::HasFailure()) {
    if (all[1]->poll(r, 64) == 0) sleep_for_messages(*all[1]);
  }
  failed = true;
  for (std::thread& t : senders) t.join();
}

TEST(tcp_transport, threads_may_cork_what_others_send_to) { send_from_threads({}); }
TEST(tcp_transport, a_cork_and_full_sockets) {
  tcp::options o;
  o.socket_buffer_bytes = 8192;
  send_from_threads(o);
}
TEST(tcp_transport, a_cork_where_the_sender_thread_writes) {
  tcp::options o;
  o.io = tcp::io_mode::blocking;
  send_from_threads(o);
}
TEST(tcp_transport, a_cork_where_little_can_be_staged) {
  tcp::options o;
  o.staging_bytes = 0;
  send_from_threads(o);
}

send_outcome send_much(transport& from) {
  const std::vector<std::byte> bytes(60'000);
  return from.try_send(1, header_of(0, 1), bytes, {});
}

// Of two that write in blocking calls, the first with as much to say as there is room for.
auto with_a_full_sender() {
  tcp::options o;
  o.io = tcp::io_mode::blocking;
  o.socket_buffer_bytes = 8192;
  auto all = make_tcp(2, o);
  while (send_much(*all[0]) != send_outcome::would_block) {
  }
  return all;
}

// A peer that reads nothing must not keep the sender thread from the end of the job.
TEST(tcp_transport, a_blocking_write_comes_back) {
  auto all = with_a_full_sender();
  EXPECT_FALSE(all[0]->flush(1));
}

// Nothing is due to a peer that was lost in the middle of a write.
TEST(tcp_transport, a_blocking_sender_sleeps_once_its_peer_is_lost) {
  auto all = with_a_full_sender();
  all[1].reset();
  while (send_much(*all[0]) != send_outcome::lost) (void)all[0]->flush(1);
  constexpr std::int64_t nap_ns = 20'000'000;
  all[0]->wait_for_room(nap_ns);  // that it is lost ends this one
  const std::int64_t start_ns = os::now_ns();
  all[0]->wait_for_room(nap_ns);
  EXPECT_GE(os::now_ns() - start_ns, nap_ns);
}

TEST(tcp_transport, what_is_staged_goes_out_at_the_end) {
  auto all = make_tcp(2, {});
  checking_receiver r(1, small_size);
  expect_all_before_the_end(all[0], *all[1], r);
}

TEST(tcp_transport, a_poll_that_may_hand_over_more_leaves_nothing) {
  auto all = make_tcp(4, {});
  constexpr std::size_t many = 200;
  for (std::size_t m = 0; m < many; ++m) send_patiently(*all[1], 1, 0, content(1, m, 64));
  for (node_id n = 2; n < 4; ++n) send_patiently(*all[n], n, 0, content(n, 0, 64));
  for (node_id n = 1; n < 4; ++n) flush_patiently(*all[n], 0);
  checking_receiver r(0, small_size);
  while (r.total < many + 2) {
    all[0]->attended();
    const std::size_t handed = all[0]->poll(r, 256);
    EXPECT_FALSE(all[0]->unattended()) << handed;
  }
}

TEST(tcp_transport, many_peers_are_served) {
  constexpr node_id nodes = 24;
  auto all = make_tcp(nodes, {});
  for (node_id n = 1; n < nodes; ++n) send_patiently(*all[n], n, 0, content(n, 0, 64));
  checking_receiver r(0, small_size);
  r.receive(*all[0], nodes - 1);
  EXPECT_EQ(r.received.size(), nodes - 1u);
}

}  // namespace
}  // namespace strata::net::test
