// SPDX-License-Identifier: Apache-2.0
// Who is believed over UDP: strangers reach the port, and may know everything but the key.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstring>

#include "net/udp/channel.hpp"
#include "net/udp/packet.hpp"
#include "net/udp/seal.hpp"
#include "net/udp/words.hpp"
#include "strata/error.hpp"
#include "transport_support.hpp"
#include "udp_support.hpp"

namespace strata::net::test {
namespace {

using udp::udp_transport;
using bytes = std::vector<std::byte>;

// Node 0 and node 1; everything that 1 sends to 0 passes through the test, which keeps it.
class udp_hostile : public testing::Test {
 protected:
  udp_hostile() : node_0_(udp_settings(0, 2)), node_1_(udp_settings(1, 2)), between_("127.0.0.1") {
    where_0_ = udp::target_of(node_0_.address());
    launch::address instead = between_.address();
    instead.worker = node_0_.address().worker;
    const std::vector<launch::address> of_0 = {node_0_.address(), node_1_.address()};
    const std::vector<launch::address> of_1 = {instead, node_1_.address()};
    const std::int64_t deadline_ns = os::now_ns() + 60'000'000'000;
    std::atomic<int> joined{0};
    std::thread first([&] {
      node_0_.connect(of_0, deadline_ns);
      joined.fetch_add(1);
    });
    std::thread second([&] {
      node_1_.connect(of_1, deadline_ns);
      joined.fetch_add(1);
    });
    while (joined.load() != 2) carry(1);
    first.join();
    second.join();
    while (carry(0)) {
    }
    (void)node_0_.poll(r_, 64);
  }

  // Brings what node 1 has sent to node 0.
  bool carry(int timeout_ms) {
    pollfd polled{between_.get(), POLLIN, 0};
    if (::poll(&polled, 1, timeout_ms) <= 0) return false;
    const std::size_t count = arrivals_.receive(between_);
    for (std::size_t i = 0; i < count; ++i) {
      const auto datagram = arrivals_.at(i);
      seen_.emplace_back(datagram.begin(), datagram.end());
      say(seen_.back());
    }
    return count != 0;
  }
  void say(std::span<const std::byte> datagram) {
    const std::size_t size = datagram.size();
    ASSERT_EQ(between_.send(where_0_, datagram, std::span(&size, 1)), 1U);
  }
  static void poll_until_refused(udp_transport& t, checking_receiver& r, std::uint64_t count) {
    for (;;) {
      (void)t.poll(r, 64);
      if (t.refused() >= count) break;
      sleep_for_messages(t);
    }
    EXPECT_EQ(t.refused(), count);
  }
  // Says it to node 0, which must refuse it without a word.
  void expect_refused(std::span<const std::byte> datagram) {
    const std::uint64_t before = node_0_.refused();
    say(datagram);
    poll_until_refused(node_0_, r_, before + 1);
  }
  // Node 1's datagram with its next message, which node 0 has not seen.
  bytes next_datagram() {
    EXPECT_EQ(node_1_.try_send(0, header_of(1, 0), content(1, sent_++, 64), {}),
              send_outcome::sent);
    for (;;) {
      pollfd polled{between_.get(), POLLIN, 0};
      EXPECT_EQ(::poll(&polled, 1, 10'000), 1);
      bytes found;
      const std::size_t count = arrivals_.receive(between_);
      for (std::size_t i = 0; i < count; ++i) {
        const auto datagram = arrivals_.at(i);
        udp::packet_head head{};
        EXPECT_TRUE(udp::read_head(datagram, head));
        if ((head.flags & udp::has_data) != 0) {
          found.assign(datagram.begin(), datagram.end());
        } else {
          say(datagram);
        }
      }
      if (!found.empty()) return found;
    }
  }
  void expect_the_job_goes_on() {
    EXPECT_TRUE(r_.lost.empty());
    const std::size_t goal = r_.total + 1;
    EXPECT_EQ(node_1_.try_send(0, header_of(1, 0), content(1, sent_++, 64), {}),
              send_outcome::sent);
    while (r_.total < goal) {
      (void)carry(1);
      node_1_.wait_for_room(0);  // it may have to repeat something
      (void)node_0_.poll(r_, 64);
      (void)node_1_.poll(others_, 64);
    }
    EXPECT_TRUE(r_.lost.empty());
  }

  udp_transport node_0_;
  udp_transport node_1_;
  udp::datagram_socket between_;
  udp::target where_0_;
  udp::arrivals arrivals_;
  std::vector<bytes> seen_;
  std::size_t sent_ = 0;
  checking_receiver r_{0, small_size};
  checking_receiver others_{1, small_size};
};

TEST_F(udp_hostile, garbage_of_every_size_is_refused_without_a_word) {
  const std::uint64_t writes = node_0_.counted().writes;
  prng random(1);
  for (std::size_t size = 0; size < 200; ++size) {
    bytes garbage(size);
    for (std::byte& b : garbage) b = static_cast<std::byte>(random.next());
    expect_refused(garbage);
    if (size < 4) continue;
    for (const std::uint32_t mark :
         {udp::packet_mark, udp::word_mark}) {  // it may know what we are
      std::memcpy(garbage.data(), &mark, 4);
      expect_refused(garbage);
    }
  }
  expect_refused(bytes(udp::datagram_bytes_max));
  expect_refused(bytes(udp::datagram_bytes_max + 1));
  expect_refused(bytes(60'000));
  EXPECT_LT(node_0_.counted().writes, writes + 20) << "it answers strangers";
  expect_the_job_goes_on();
}

TEST_F(udp_hostile, whatever_byte_is_altered_the_datagram_is_refused) {
  const bytes whole = next_datagram();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const unsigned bit : {0U, 7U}) {
      bytes altered = whole;
      altered[i] ^= static_cast<std::byte>(1U << bit);
      expect_refused(altered);
    }
  }
  EXPECT_EQ(r_.total, 0U);
  say(whole);
  r_.receive(node_0_, 1);
  expect_the_job_goes_on();
}

TEST_F(udp_hostile, a_datagram_that_was_cut_or_extended_is_refused) {
  const bytes whole = next_datagram();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    expect_refused(std::span(whole).first(size));
  }
  bytes longer = whole;
  longer.push_back(std::byte{0});
  expect_refused(longer);
  say(whole);
  r_.receive(node_0_, 1);
  expect_the_job_goes_on();
}

TEST_F(udp_hostile, what_was_said_before_is_not_heard_again) {
  const bytes whole = next_datagram();
  say(whole);
  r_.receive(node_0_, 1);
  for (int i = 0; i < 100; ++i) {
    say(whole);
    for (const bytes& old : seen_) say(old);
    (void)node_0_.poll(r_, 64);
  }
  EXPECT_EQ(r_.total, 1U);
  expect_the_job_goes_on();
  EXPECT_EQ(r_.total, 2U);
}

TEST_F(udp_hostile, what_a_node_says_cannot_be_played_back_to_it) {
  const bytes whole = next_datagram();
  // To node 1 itself, as it is and as if node 0 had said it.
  const auto where = udp::target_of(node_1_.address());
  bytes turned = whole;
  const node_id from = 0;
  const node_id to = 1;
  std::memcpy(turned.data() + 4, &from, sizeof from);
  std::memcpy(turned.data() + 6, &to, sizeof to);
  const std::uint64_t before = node_1_.refused();
  for (const bytes& b : {whole, turned}) {
    const std::size_t size = b.size();
    ASSERT_EQ(between_.send(where, b, std::span(&size, 1)), 1U);
  }
  poll_until_refused(node_1_, others_, before + 2);
  EXPECT_EQ(others_.total, 0U);
  say(whole);
  r_.receive(node_0_, 1);
}

TEST_F(udp_hostile, another_key_another_job_or_another_run_is_refused) {
  const udp::settings s = udp_settings(1, 2);
  const std::string nonce_0 = node_0_.address().worker;
  const std::string nonce_1 = node_1_.address().worker;
  udp::packet p;
  p.source = 1;
  p.flags = udp::wants_answer;
  p.number = 1000;
  const auto said_under = [&](const launch::job_key& key, std::uint64_t job, node_id source,
                              node_id destination, const std::string& own,
                              const std::string& other) {
    bytes datagram(200);
    const std::size_t size = udp::write_packet(p, datagram);
    const udp::seal seal(key, job, source, destination, own, other);
    seal.close(datagram, size, p.number);
    datagram.resize(size + udp::tag_bytes);
    return datagram;
  };
  launch::job_key other_key = s.key;
  other_key[31] ^= 1;
  expect_refused(said_under(other_key, s.job, 1, 0, nonce_1, nonce_0));
  expect_refused(said_under(s.key, s.job + 1, 1, 0, nonce_1, nonce_0));
  expect_refused(said_under(s.key, s.job, 0, 1, nonce_1, nonce_0));
  expect_refused(said_under(s.key, s.job, 1, 0, udp::fresh_nonce(), nonce_0));
  expect_refused(said_under(s.key, s.job, 1, 0, nonce_1, udp::fresh_nonce()));
  // The test itself can speak for node 1 with what it knows: of two, only the other is refused.
  say(said_under(s.key, s.job, 1, 0, nonce_1, nonce_0));
  expect_refused(bytes(100));
}

// A connection that is made again (net/udp/renewal_handshake.hpp).
class udp_hostile_again : public udp_hostile, public renewals::hands {
 protected:
  udp_hostile_again() {
    node_0_.tell(this);
    node_1_.tell(&at_1_);
  }
  void on_met(node_id, std::unique_ptr<renewal> made) override {
    EXPECT_TRUE(made->begin());
    ++met_;
  }
  void on_not_met(node_id) override {}
  void renew() {
    node_0_.drop(1);
    node_1_.drop(0);
    const unsigned goal = met_ + 1;
    node_1_.ask(0);
    while (met_ != goal || at_1_.met != goal) {
      (void)carry(1);
      node_1_.wait_for_room(0);
      (void)node_0_.poll(r_, 64);
      (void)node_1_.poll(others_, 64);
    }
  }

  struct : renewals::hands {
    void on_met(node_id, std::unique_ptr<renewal> made) override {
      EXPECT_TRUE(made->begin());
      ++met;
    }
    void on_not_met(node_id) override {}
    unsigned met = 0;
  } at_1_;
  unsigned met_ = 0;
};

TEST_F(udp_hostile_again, nothing_of_the_connection_before_is_heard) {
  const bytes late = next_datagram();
  for (int round = 0; round < 3; ++round) renew();
  const std::vector<bytes> all = seen_;
  renew();
  // Words about connections, and what was said by each.
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const bytes& b) { return udp::is_word(b); }));
  for (const bytes& old : all) expect_refused(old);
  expect_refused(late);
  EXPECT_EQ(met_, 4U);
  EXPECT_EQ(r_.total, 0U);
  // The last one stands.
  EXPECT_NE(node_1_.try_send(0, header_of(1, 0), content(1, 0, 64), {}), send_outcome::lost);
  while (r_.total == 0) {
    (void)carry(1);
    node_1_.wait_for_room(0);
    (void)node_0_.poll(r_, 64);
    (void)node_1_.poll(others_, 64);
  }
  EXPECT_TRUE(r_.lost.empty());
}

TEST_F(udp_hostile_again, whatever_byte_of_a_word_is_altered_it_is_refused) {
  node_0_.drop(1);
  node_1_.drop(0);
  node_1_.ask(0);
  bytes call;
  while (call.empty()) {
    pollfd polled{between_.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&polled, 1, 10'000), 1);
    const std::size_t count = arrivals_.receive(between_);
    for (std::size_t i = 0; i < count; ++i) {
      if (const auto datagram = arrivals_.at(i); udp::is_word(datagram))
        call.assign(datagram.begin(), datagram.end());
    }
  }
  for (std::size_t i = 0; i < call.size(); ++i) {
    bytes altered = call;
    altered[i] ^= std::byte{1};
    expect_refused(altered);
    expect_refused(std::span(call).first(i));
  }
  EXPECT_EQ(met_, 0U);
}

// Faster than it is looked at.
TEST(udp_admission, who_floods_does_not_keep_a_node_waiting_for_others) {
  udp_transport waits(udp_settings(0, 2));
  // Where nobody is.
  const udp::datagram_socket nobody("127.0.0.1");
  launch::address instead = nobody.address();
  instead.worker = udp::fresh_nonce();
  const std::vector<launch::address> directory = {waits.address(), instead};
  const udp::target where = udp::target_of(waits.address());
  std::atomic<bool> is_over{false};
  std::vector<std::thread> strangers;
  for (int i = 0; i < 8; ++i) {
    strangers.emplace_back([&] {
      const udp::datagram_socket stranger("127.0.0.1");
      const std::vector<std::size_t> sizes(udp::batch_max, 1);
      const bytes garbage(sizes.size());
      while (!is_over.load()) (void)stranger.send(where, garbage, sizes);
    });
  }
  EXPECT_THROW(waits.connect(directory, os::now_ns() + 300'000'000), error);
  is_over.store(true);
  for (std::thread& t : strangers) t.join();
  EXPECT_GT(waits.refused(), 0U);
}

// Somebody who knows the key, but has not been let in: a node that comes too early.
TEST(udp_admission, who_was_not_let_in_is_not_heard) {
  udp_transport member(udp_settings(0, 2));
  std::vector<launch::address> directory = {member.address(), {}};
  member.connect(directory, os::now_ns());
  udp_transport early(udp_settings(1, 2));
  directory[1] = early.address();
  std::thread comes([&] { early.connect(directory, os::now_ns() + too_long_ns); });
  checking_receiver r(0, small_size);
  const std::uint64_t writes = member.counted().writes;
  while (member.refused() < 3) {
    EXPECT_EQ(member.poll(r, 64), 0u);
    if (member.refused() < 3) sleep_for_messages(member);
  }
  EXPECT_EQ(member.counted().writes, writes) << "it answers strangers";
  EXPECT_FALSE(member.reaches(1));
  member.admit(1, directory[1]);
  std::atomic<bool> joined{false};
  std::thread sees([&] {
    comes.join();
    joined.store(true);
    member.wake_receiver();
  });
  while (!joined.load()) {
    (void)member.poll(r, 64);
    if (!joined.load()) sleep_for_messages(member);
  }
  sees.join();
  EXPECT_TRUE(r.lost.empty());
  send_patiently(early, 1, 0, content(1, 0, 64));
  r.receive(member, 1);
}

// A stranger sends from the very address of a node that comes, and in its name, before and after it
// is let in.
TEST(udp_admission, an_address_proves_nothing) {
  udp_transport member(udp_settings(0, 2));
  std::vector<launch::address> directory = {member.address(), {}};
  member.connect(directory, os::now_ns());
  const udp::datagram_socket stranger("127.0.0.1");
  const udp::target to = udp::target_of(member.address());
  udp::packet p;
  p.source = 1;
  p.flags = udp::wants_answer;
  bytes datagram(100);
  datagram.resize(udp::write_packet(p, datagram) + udp::tag_bytes);
  checking_receiver r(0);
  const auto expect_refused = [&] {
    const std::uint64_t before = member.refused();
    const std::uint64_t writes = member.counted().writes;
    const std::size_t size = datagram.size();
    ASSERT_EQ(stranger.send(to, datagram, std::span(&size, 1)), 1U);
    while (member.refused() == before) {
      if (member.poll(r, 64) == 0 && member.refused() == before) sleep_for_messages(member);
    }
    EXPECT_EQ(member.counted().writes, writes);
  };
  expect_refused();
  launch::address where = stranger.address();
  where.worker = udp::fresh_nonce();
  member.admit(1, where);
  expect_refused();
  EXPECT_EQ(r.total, 0U);
  EXPECT_TRUE(r.lost.empty());
}

// Where the network carries what it says, and nothing of what is said to it.
TEST(udp_admission, who_speaks_and_does_not_hear_is_not_joined_where_others_may_be_absent) {
  const udp::settings s = udp_settings(1, 2);
  udp_transport node_0(udp_settings(0, 2));
  const udp::datagram_socket deaf("127.0.0.1");
  std::vector<launch::address> directory = {node_0.address(), deaf.address()};
  directory[1].worker = udp::fresh_nonce();
  udp::packet p;
  p.source = 1;
  p.flags = udp::wants_answer;
  bytes datagram(200);
  const std::size_t size = udp::write_packet(p, datagram);
  udp::seal(s.key, s.job, 1, 0, directory[1].worker, directory[0].worker)
      .close(datagram, size, p.number);
  datagram.resize(size + udp::tag_bytes);
  // Before it is waited for, so that it is heard at once.
  const std::size_t all = datagram.size();
  ASSERT_EQ(deaf.send(udp::target_of(node_0.address()), datagram, std::span(&all, 1)), 1U);
  node_0.connect_where_possible(directory, os::now_ns() + 50'000'000);
  EXPECT_EQ(node_0.refused(), 0U);
  EXPECT_FALSE(node_0.reaches(1));
}

// A node of the job that breaks the protocol loses its place, and nothing else happens.
TEST_F(udp_hostile, a_peer_that_breaks_the_protocol_is_lost) {
  const udp::settings s = udp_settings(1, 2);
  const udp::seal seal(s.key, s.job, 1, 0, node_1_.address().worker, node_0_.address().worker);
  const bytes data(64);
  udp::packet p;
  p.source = 1;
  p.number = 1'000'000;
  p.flags = udp::has_data | udp::wants_answer;
  p.offset = std::uint64_t{1} << 40;  // far beyond the window
  p.data = data;
  bytes datagram(200);
  const std::size_t size = udp::write_packet(p, datagram);
  seal.close(datagram, size, p.number);
  datagram.resize(size + udp::tag_bytes);
  say(datagram);
  r_.receive_until(node_0_, [&] { return !r_.lost.empty(); });
  EXPECT_EQ(r_.lost[1][0], "sent a malformed packet");
  EXPECT_EQ(node_0_.try_send(1, header_of(0, 1), {}, {}), send_outcome::lost);
}

TEST(udp_packet, what_is_written_is_read_and_nothing_else) {
  prng random(7);
  const bytes data(100, std::byte{5});
  for (int round = 0; round < 2000; ++round) {
    udp::packet p;
    p.source = static_cast<node_id>(random.next());
    p.destination = static_cast<node_id>(random.next());
    p.number = random.next() >> 8;
    p.waited_for = static_cast<std::uint32_t>(random.below(100) & p.number);
    p.flags = static_cast<std::uint8_t>(random.below(4));
    p.flags |= udp::wants_answer;
    std::uint64_t to = (std::uint64_t{1} << 40) + random.below(1000);
    if ((p.flags & udp::has_acknowledgement) != 0) {
      p.ack.window = random.next();
      p.ack.count = random.below(udp::ranges_max + 1);
      for (std::size_t i = 0; i < p.ack.count; ++i) {
        const std::uint64_t from = to - 1 - random.below(50);
        p.ack.ranges[i] = {from, to};
        to = from - 1 - random.below(9);
      }
    }
    if ((p.flags & udp::has_data) != 0) {
      p.offset = random.next();
      p.data = std::span(data).first(1 + random.below(99));
    }
    bytes written(1000);
    written.resize(udp::write_packet(p, written));
    udp::packet q;
    ASSERT_TRUE(udp::read_packet(written, q));
    ASSERT_EQ(q.number, p.number);
    ASSERT_EQ(q.waited_for, p.waited_for);
    ASSERT_EQ(q.flags, p.flags);
    ASSERT_EQ(q.ack.count, p.ack.count);
    for (std::size_t i = 0; i < p.ack.count; ++i) {
      ASSERT_EQ(q.ack.ranges[i].from, p.ack.ranges[i].from);
      ASSERT_EQ(q.ack.ranges[i].to, p.ack.ranges[i].to);
    }
    ASSERT_EQ(q.offset, p.offset);
    ASSERT_TRUE(std::equal(q.data.begin(), q.data.end(), p.data.begin(), p.data.end()));
    // Cut anywhere, it is refused, or it is a packet with less data.
    for (std::size_t size = 0; size < written.size(); ++size) {
      udp::packet less;
      if (!udp::read_packet(std::span(written).first(size), less)) continue;
      ASSERT_TRUE((p.flags & udp::has_data) != 0 && less.data.size() < p.data.size());
    }
    // Altered anywhere, whatever is read lies within.
    for (int i = 0; i < 20; ++i) {
      bytes altered = written;
      altered[random.below(altered.size())] ^= static_cast<std::byte>(1 + random.below(255));
      udp::packet other;
      if (!udp::read_packet(altered, other)) continue;
      ASSERT_LE(other.ack.count, udp::ranges_max);
      ASSERT_LE(other.data.size(), altered.size());
      for (std::size_t k = 0; k < other.ack.count; ++k) {
        ASSERT_LT(other.ack.ranges[k].from, other.ack.ranges[k].to);
      }
    }
  }
}

// The seal keeps strangers out; a node of the job that has gone mad is kept within bounds.
TEST(udp_channel, survives_whatever_a_peer_says) {
  prng random(11);
  const bytes data(1200, std::byte{5});
  unsigned taken = 0;
  unsigned malformed = 0;
  for (int round = 0; round < 300; ++round) {
    udp::channel::settings s;
    s.out.buffer_bytes = s.in.buffer_bytes = 1 << 16;
    udp::channel c(0, 1, s);
    ASSERT_TRUE(c.write(std::span(data), std::span(data), std::span(data)));
    std::int64_t now_ns = 1;
    bytes into(s.out.packet_bytes);
    for (int i = 0; i < 100; ++i) {
      udp::packet p;
      p.number = random.below(4) == 0 ? random.next() : random.below(200);
      p.waited_for = static_cast<std::uint32_t>(random.next() >> random.below(64));
      p.flags = static_cast<std::uint8_t>(random.below(16));
      p.ack.window = random.next() >> random.below(64);
      p.ack.delay_us = static_cast<std::uint32_t>(random.next());
      std::uint64_t to = 1 + random.below(random.below(10) == 0 ? 1000 : 8);
      while (p.ack.count < udp::ranges_max && to > 1) {
        const std::uint64_t from = to - 1 - random.below(to);
        p.ack.ranges[p.ack.count++] = {from, to};
        if (from < 2) break;
        to = from - 1;
      }
      p.offset = random.below(4) == 0 ? random.next() : random.below(1 << 16);
      p.data = std::span(data).first(1 + random.below(data.size()));
      bytes written(3000);
      if ((p.flags & udp::has_data) == 0) p.data = {};
      written.resize(udp::write_packet(p, written));
      udp::packet q;
      now_ns += static_cast<std::int64_t>(random.below(1'000'000));
      if (udp::read_packet(written, q)) {
        if (c.on_packet(q, now_ns) == udp::channel::outcome::malformed) {
          ++malformed;
          break;  // it is lost, and nothing else is asked of it
        }
        ++taken;
      }
      if (random.below(2) == 0) c.in().consume(random.below(c.in().data().size() + 1));
      c.on_time(now_ns);
      std::uint64_t number = 0;
      for (int n = 0; n < 10 && c.next_packet(into, now_ns, number) != 0; ++n) {
      }
      ASSERT_LE(c.in().kept_intervals(), 2000U);
      ASSERT_LE(c.out().remembered(), 5000U);
    }
  }
  EXPECT_GT(taken, 1000U);
  EXPECT_GT(malformed, 50U);
}

}  // namespace
}  // namespace strata::net::test
