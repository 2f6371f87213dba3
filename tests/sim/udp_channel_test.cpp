// SPDX-License-Identifier: Apache-2.0
// What the transport over UDP promises over a network that keeps no promise, on a simulated clock:
// exactly once, in order, in bounded memory, within the windows, and fast.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "../common/known_bytes.hpp"
#include "net/udp/channel.hpp"
#include "sim/world.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

namespace udp = net::udp;
using udp::channel;

constexpr std::size_t headers_bytes = 28;  // IPv4 and UDP
constexpr std::size_t mebibyte = std::size_t{1} << 20;

// What a side writes from there on: as many bytes of it as lie beside each other, at most `most`.
std::span<const std::byte> stream_at(int side, std::uint64_t offset, std::size_t most) {
  constexpr std::size_t period = 65'521;  // a prime, which no size of packets or windows divides
  static const auto bytes = random_looking(period);
  const auto at = static_cast<std::size_t>((offset + static_cast<unsigned>(side) * 77) % period);
  return {&bytes[at], std::min(most, period - at)};
}

// Two nodes that talk through a simulated network.
struct talk {
  struct end {
    std::unique_ptr<channel> c;
    std::uint64_t to_write = 0, written = 0, read = 0;
    std::int64_t timer = INT64_MAX;
    bool reads = true;
    bool intact = true;
  };

  talk(const sim::network_model& n, std::uint64_t seed, const channel::settings& s)
      : world(n, seed), settings(s) {
    for (const int side : {0, 1}) {
      ends[side].c = std::make_unique<channel>(static_cast<net::node_id>(side),
                                               static_cast<net::node_id>(1 - side), s);
      ends[side].c->ping();
    }
    for (const int side : {0, 1}) pump(side);
  }

  void send(int side, std::uint64_t bytes) {
    ends[side].to_write += bytes;
    pump(side);
  }

  // What a node does whenever something has happened.
  void pump(int side) {
    end& e = ends[side];
    std::array<std::byte, 2048> piece{};
    for (;;) {
      const std::size_t bytes =
          std::min({piece.size(), static_cast<std::size_t>(e.to_write - e.written),
                    e.c->out().room_bytes()});
      if (bytes == 0) break;
      for (std::size_t i = 0; i < bytes;) {
        const auto part = stream_at(side, e.written + i, bytes - i);
        std::memcpy(&piece[i], part.data(), part.size());
        i += part.size();
      }
      ASSERT_TRUE(e.c->write(std::span(piece).first(bytes), {}, {}));
      e.written += bytes;
    }
    if (e.reads) {
      const auto data = e.c->in().data();
      for (std::size_t i = 0; i < data.size();) {
        const auto part = stream_at(1 - side, e.read + i, data.size() - i);
        e.intact &= same(part, data.subspan(i, part.size()));
        i += part.size();
      }
      e.read += data.size();
      if (!data.empty()) e.c->in().consume(data.size());
    }
    std::vector<std::byte> packet(settings.out.packet_bytes);
    std::uint64_t number = 0;
    while (const std::size_t bytes = e.c->next_packet(packet, world.now_ns(), number)) {
      ASSERT_LE(bytes + settings.tail_bytes, settings.out.packet_bytes);
      trace = (trace ^ number ^ bytes << 32 ^ static_cast<std::uint64_t>(world.now_ns())) *
              0x100000001b3;
      if (is_dropped(bytes + settings.tail_bytes + headers_bytes)) continue;
      world.carry(static_cast<net::node_id>(side), static_cast<net::node_id>(1 - side),
                  bytes + settings.tail_bytes + headers_bytes, world.now_ns(),
                  [this, side,
                   copy = std::vector<std::byte>(
                       packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(bytes))] {
                    arrive(1 - side, copy);
                  });
    }
    check_windows(e);
    watch(side);
  }

  // By a switch in front of the link, as fast as the link is.
  bool is_dropped(std::size_t bytes) {
    if (queue_bytes == 0 || bytes < 1000) return false;
    const std::int64_t waits = std::max<std::int64_t>(link_free_at - world.now_ns(), 0);
    if (static_cast<std::size_t>(waits) > queue_bytes) {
      ++dropped;
      return true;
    }
    link_free_at = world.now_ns() + waits + static_cast<std::int64_t>(bytes);
    return false;
  }

  void arrive(int side, const std::vector<std::byte>& bytes) {
    udp::packet p;
    ASSERT_TRUE(udp::read_packet(bytes, p));
    ASSERT_NE(ends[side].c->on_packet(p, world.now_ns()), channel::outcome::malformed);
    pump(side);
    if (on_progress) on_progress();
  }

  void check_windows(const end& e) {
    const udp::sending& out = e.c->out();
    // Beyond the window only what fills up the last packet, and probes.
    if (out.probes() == 0 && out.packets_lost() == 0) {
      ASSERT_LE(out.in_flight_bytes(), out.window_bytes() + settings.out.packet_bytes);
    }
    ASSERT_LE(out.next_offset(), std::max<std::uint64_t>(out.peer_window(), 0));
    ASSERT_LE(e.c->in().kept_intervals(), std::size_t{2048});
    most_remembered = std::max(most_remembered, out.remembered());
  }

  void watch(int side) {
    const std::int64_t next = ends[side].c->due_ns();
    if (next >= ends[side].timer) return;
    ends[side].timer = next;
    world.at(next, [this, side] {
      if (ends[side].timer > world.now_ns()) return;  // another one came before
      ends[side].timer = INT64_MAX;
      ends[side].c->on_time(world.now_ns());
      pump(side);
    });
  }

  [[nodiscard]] bool has_all(int side) const { return ends[side].read == ends[1 - side].to_write; }
  [[nodiscard]] bool is_over() const {
    return has_all(0) && has_all(1) && ends[0].c->out().is_clear() && ends[1].c->out().is_clear();
  }
  void expect_intact() const {
    for (const end& e : ends) EXPECT_TRUE(e.intact);
    EXPECT_TRUE(has_all(0));
    EXPECT_TRUE(has_all(1));
  }

  sim::world world;
  const channel::settings settings;
  std::array<end, 2> ends;
  std::function<void()> on_progress;
  std::uint64_t trace = 0;
  std::size_t most_remembered = 0;
  std::size_t queue_bytes = 0;  // 0: endless
  std::int64_t link_free_at = 0;
  std::uint64_t dropped = 0;
};

channel::settings settings_of(std::size_t buffer_bytes = mebibyte) {
  channel::settings s;
  s.tail_bytes = 16;
  s.out.buffer_bytes = s.in.buffer_bytes = buffer_bytes;
  return s;
}

constexpr std::int64_t long_ns = 1'000'000'000'000;

TEST(udp_channel, delivers_once_and_in_order_over_a_network_that_does_not) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    const sim::network_model bad{.jitter_ns = 50'000, .loss = 0.2, .duplication = 0.2};
    talk two(bad, seed, settings_of(128 << 10));
    two.send(0, 3 * mebibyte);
    two.send(1, mebibyte);
    EXPECT_TRUE(two.world.run([&] { return two.is_over(); }, long_ns));
    two.expect_intact();
    EXPECT_GT(two.ends[0].c->out().packets_lost(), 0U);
  }
}

TEST(udp_channel, does_the_same_again_from_the_same_seed) {
  const auto trace_of = [](std::uint64_t seed) {
    const sim::network_model bad{.jitter_ns = 20'000, .loss = 0.05, .duplication = 0.05};
    talk two(bad, seed, settings_of());
    two.send(0, mebibyte);
    two.send(1, mebibyte / 2);
    two.world.run([&] { return two.is_over(); }, long_ns);
    return two.trace;
  };
  EXPECT_EQ(trace_of(1), trace_of(1));
  EXPECT_NE(trace_of(1), trace_of(2));
}

TEST(udp_channel, sends_a_small_message_at_once_and_is_quiet_afterwards) {
  talk two({}, 1, settings_of());
  EXPECT_TRUE(two.world.run([&] { return two.is_over(); }));
  two.world.run([] { return false; }, 1'000'000'000);  // until nothing is planned any more
  const std::uint64_t packets = two.world.packets();
  const std::int64_t began = two.world.now_ns();
  two.send(0, 64);
  EXPECT_TRUE(two.world.run([&] { return two.has_all(1); }));
  EXPECT_LT(two.world.now_ns() - began, 6'000);  // the latency and 1.25 bytes per ns
  EXPECT_FALSE(two.world.run([] { return false; }, long_ns)) << "somebody never rests";
  EXPECT_EQ(two.world.packets() - packets, 2U) << "the message and its acknowledgement";
  EXPECT_EQ(two.ends[0].c->due_ns(), udp::never_ns);
  EXPECT_EQ(two.ends[1].c->due_ns(), udp::never_ns);
}

TEST(udp_channel, an_answer_carries_the_acknowledgement) {
  talk two({}, 1, settings_of());
  two.world.run([] { return false; }, 1'000'000'000);
  const std::uint64_t packets = two.world.packets();
  two.send(0, 64);
  EXPECT_TRUE(two.world.run([&] { return two.has_all(1); }));
  two.send(1, 64);
  EXPECT_TRUE(two.world.run([&] { return two.has_all(0); }));
  EXPECT_TRUE(two.ends[0].c->out().is_clear());
  EXPECT_EQ(two.world.packets() - packets, 2U);
}

TEST(udp_channel, loses_nothing_where_the_network_loses_nothing) {
  talk two({}, 1, settings_of());
  two.send(0, 8 * mebibyte);
  EXPECT_TRUE(two.world.run([&] { return two.is_over(); }, long_ns));
  EXPECT_EQ(two.ends[0].c->out().packets_lost(), 0U);
  EXPECT_EQ(two.ends[0].c->out().probes(), 0U);
}

TEST(udp_channel, a_receiver_that_does_not_read_stops_the_sender) {
  for (const double loss : {0.0, 0.1}) {
    talk two({.loss = loss}, 3, settings_of(128 << 10));
    two.ends[1].reads = false;
    two.send(0, 2 * mebibyte);
    two.world.run([] { return false; }, 3'000'000'000);
    EXPECT_EQ(two.ends[0].c->out().next_offset(), std::uint64_t{128} << 10);
    EXPECT_EQ(two.ends[0].c->in().kept_intervals(), 1U);
    two.ends[1].reads = true;
    two.pump(1);
    EXPECT_TRUE(two.world.run([&] { return two.is_over(); }, long_ns));
    two.expect_intact();
  }
}

TEST(udp_channel, goes_on_after_a_cut) {
  talk two({}, 1, settings_of());
  two.world.run([] { return false; }, 1'000'000'000);
  two.world.cut(0, 1);
  two.send(0, mebibyte);
  two.world.run([] { return false; }, 31'000'000'000);
  EXPECT_EQ(two.ends[1].read, 0U);
  EXPECT_GT(two.ends[0].c->out().silent_ns(two.world.now_ns()), 29'000'000'000);
  EXPECT_LT(two.ends[0].c->out().probes(), 100U) << "it repeats too often";
  EXPECT_EQ(two.ends[0].c->out().window_bytes(), 2U * 1400U);
  two.world.join(0, 1);
  const std::int64_t joined = two.world.now_ns();
  EXPECT_TRUE(two.world.run([&] { return two.is_over(); }, long_ns));
  EXPECT_LT(two.world.now_ns() - joined, 1'100'000'000);  // one interval, and the transfer
  two.expect_intact();
}

// All of a node was stopped while an acknowledgement waited for it: by that time a round trip took
// minutes, and so do those after it, by their mean.
TEST(udp_channel, after_a_long_stop_a_gap_is_not_waited_for_as_long) {
  constexpr std::int64_t stop_ns = 600'000'000'000;
  const channel::settings s = settings_of();
  channel from(0, 1, s), to(1, 0, s);
  std::int64_t now_ns = 1;
  std::vector<std::byte> datagram(s.out.packet_bytes);
  std::uint64_t number = 0;
  const auto pass = [&](channel& sender, channel* hears) {
    const std::size_t bytes = sender.next_packet(datagram, now_ns, number);
    ASSERT_GT(bytes, 0U);
    if (hears == nullptr) return;
    udp::packet p;
    ASSERT_TRUE(udp::read_packet(std::span(datagram).first(bytes), p));
    ASSERT_EQ(hears->on_packet(p, now_ns), channel::outcome::taken);
  };
  from.ping();
  pass(from, &to);
  pass(to, &from);  // how much there is room for
  const std::vector<std::byte> two_packets(s.out.packet_bytes * 3 / 2);
  for (const std::int64_t waits_ns : {stop_ns, std::int64_t{50'000}}) {
    ASSERT_TRUE(from.write(two_packets, {}, {}));
    pass(from, nullptr);
    pass(from, &to);
    now_ns += waits_ns;
    pass(to, &from);
    if (from.next_packet(datagram, now_ns, number) == 0) {
      EXPECT_LE(from.due_ns(), now_ns + s.out.most_timeout_ns);
      now_ns = from.due_ns();
      from.on_time(now_ns);
      EXPECT_GT(from.next_packet(datagram, now_ns, number), 0U);
    }
    udp::packet again;
    ASSERT_TRUE(udp::read_packet(datagram, again));
    EXPECT_NE(again.flags & udp::has_data, 0);
    EXPECT_EQ(to.on_packet(again, now_ns), channel::outcome::taken);
    now_ns = std::max(now_ns, to.due_ns());
    pass(to, &from);
    EXPECT_TRUE(from.out().is_clear());
  }
}

TEST(udp_channel, remembers_no_more_packets_than_a_window_has) {
  talk two({.jitter_ns = 10'000, .loss = 0.02}, 5, settings_of());
  two.send(0, 32 * mebibyte);
  EXPECT_TRUE(two.world.run([&] { return two.is_over(); }, long_ns));
  EXPECT_LT(two.most_remembered, 4 * mebibyte / 1400);
}

TEST(udp_channel, losses_beyond_chance_shrink_the_window) {
  talk two({.latency_ns = 50'000, .loss = 0.1}, 1, settings_of());
  two.send(0, 8 * mebibyte);
  EXPECT_TRUE(two.world.run([&] { return two.is_over(); }, long_ns));
  EXPECT_LT(two.ends[0].c->out().window_bytes(), 20U * 1400U) << "it ignores losses";
}

// What does not fit into the queue of a switch is dropped: where the queue is long enough to show
// in the round trip, and where it is not.
TEST(udp_channel, fills_a_link_whose_queue_overflows_and_little_is_dropped) {
  for (const std::size_t queue_bytes : {16U << 10, 64U << 10, 256U << 10}) {
    talk two({.latency_ns = 50'000, .bytes_per_ns = 1.0}, 1, settings_of());
    two.queue_bytes = queue_bytes;
    two.world.run([] { return false; }, 1'000'000'000);
    const std::int64_t began = two.world.now_ns();
    two.send(0, 16 * mebibyte);
    EXPECT_TRUE(two.world.run([&] { return two.has_all(1); }, long_ns));
    two.expect_intact();
    const double rate =
        static_cast<double>(16 * mebibyte) / static_cast<double>(two.world.now_ns() - began);
    const double dropped = static_cast<double>(two.dropped) / (16.0 * mebibyte / 1400);
    std::printf("a queue of %zu KiB: %.3f GB/s, %.2f %% dropped\n", queue_bytes >> 10, rate,
                100 * dropped);
    EXPECT_GT(rate, 0.7);
    EXPECT_LT(dropped, 0.04);
    EXPECT_GT(two.dropped, 0U);
  }
}

// ---- goodput ----

struct goodput {
  double stream;     // bytes per ns, transfers behind each other
  double transfers;  // each begins when the one before has been answered
};

goodput measure(std::int64_t latency_ns, double loss, std::uint64_t seed,
                std::size_t buffer_bytes) {
  // Many: one whose last packet is lost takes twice as long.
  const int transfers = latency_ns == 50'000 ? 32 : 16;
  const sim::network_model network{.latency_ns = latency_ns, .bytes_per_ns = 1.0, .loss = loss};
  goodput g{};
  {
    talk two(network, seed, settings_of(buffer_bytes));
    two.world.run([] { return false; }, 1'000'000'000);
    const std::int64_t began = two.world.now_ns();
    two.send(0, static_cast<std::uint64_t>(transfers) * mebibyte);
    EXPECT_TRUE(two.world.run([&] { return two.has_all(1); }, long_ns));
    two.expect_intact();
    g.stream =
        static_cast<double>(transfers) * mebibyte / static_cast<double>(two.world.now_ns() - began);
  }
  talk two(network, seed, settings_of(buffer_bytes));
  two.world.run([] { return false; }, 1'000'000'000);
  const std::int64_t began = two.world.now_ns();
  for (int i = 0; i < transfers; ++i) {
    two.send(0, mebibyte);
    EXPECT_TRUE(two.world.run([&] { return two.has_all(1); }, long_ns));
    two.send(1, 8);
    EXPECT_TRUE(two.world.run([&] { return two.has_all(0); }, long_ns));
  }
  two.expect_intact();
  g.transfers =
      static_cast<double>(transfers) * mebibyte / static_cast<double>(two.world.now_ns() - began);
  return g;
}

// Of 1 MiB in packets of 1400 bytes some are always lost, so the transfer always takes one round
// trip more: where that is longer than the transfer itself, only streams can be as fast.
TEST(udp_channel, one_percent_of_loss_costs_less_than_a_third_of_the_goodput) {
  struct path {
    std::int64_t latency_ns;
    std::size_t buffer_bytes;
  };
  for (const path p :
       {path{5'000, mebibyte}, path{50'000, mebibyte}, path{1'000'000, 8 * mebibyte}}) {
    if (slow_build && p.latency_ns != 50'000) continue;
    const goodput whole = measure(p.latency_ns, 0, 1, p.buffer_bytes);
    // One path from many seeds, of which a sanitizer needs few; the others show what latency does.
    auto all = p.latency_ns == 50'000 ? seeds() : std::vector<std::uint64_t>{1};
    if (slow_build) all.resize(1);
    for (const std::uint64_t seed : all) {
      STRATA_WITH_SEED(seed);
      const goodput lossy = measure(p.latency_ns, 0.01, seed, p.buffer_bytes);
      std::printf(
          "latency %4lld us, 1 GB/s: stream %.3f of %.3f (%.2f), 1 MiB %.3f of %.3f (%.2f)\n",
          static_cast<long long>(p.latency_ns / 1000), lossy.stream, whole.stream,
          lossy.stream / whole.stream, lossy.transfers, whole.transfers,
          lossy.transfers / whole.transfers);
      EXPECT_GT(lossy.stream, 0.7 * whole.stream);
      if (p.latency_ns <= 50'000) {
        EXPECT_GT(lossy.transfers, 0.7 * whole.transfers);
      }
    }
  }
}

}  // namespace
}  // namespace strata::test
