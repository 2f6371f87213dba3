// SPDX-License-Identifier: Apache-2.0
// The first packets of nodes that join over UDP: each node begins at its own time, knows nothing of
// what came before, and the network loses, doubles and delays what it likes. Whoever asks is heard
// in the end, and what a node says as soon as it has heard another arrives once.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "durations.hpp"
#include "net/udp/channel.hpp"
#include "net/udp/seal.hpp"
#include "sim/world.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

namespace udp = net::udp;
using net::node_id;
using udp::channel;

constexpr std::size_t datagram_bytes = 1'400;

class joining_over_udp {
 public:
  joining_over_udp(std::uint64_t seed, node_id nodes, double loss)
      : world({.jitter_ns = 200'000, .loss = loss, .duplication = 0.1}, seed), nodes_(nodes) {
    key_.fill(9);
    for (node_id n = 0; n < nodes; ++n) {
      began_.push_back(false);
      nonces_.emplace_back(udp::nonce_bytes, static_cast<char>('a' + n));
      world.at(static_cast<std::int64_t>(world.random.below(3 * second_ns)),
               [this, n] { begin(n); });
    }
    ends_.resize(std::size_t{nodes} * nodes);
  }

  // As udp_transport::greet() asks: who is heard of; and where others may be absent, who has heard
  // this node as well.
  [[nodiscard]] bool has_greeted(node_id n, bool and_is_heard) const {
    if (!began_[n]) return false;
    for (node_id other = 0; other < nodes_; ++other) {
      if (other == n) continue;
      const end& e = of(n, other);
      if (!e.greeted || (and_is_heard && !e.c->out().is_heard())) return false;
    }
    return true;
  }
  [[nodiscard]] bool all_have(bool and_are_heard) const {
    for (node_id n = 0; n < nodes_; ++n) {
      if (!has_greeted(n, and_are_heard)) return false;
    }
    return true;
  }
  void expect_words_to_arrive() {
    const auto all_is_acknowledged = [this] {
      return std::all_of(ends_.begin(), ends_.end(),
                         [](const end& e) { return !e.c || e.c->out().is_clear(); });
    };
    EXPECT_TRUE(world.run(all_is_acknowledged, world.now_ns() + 300 * second_ns));
    for (node_id n = 0; n < nodes_; ++n) {
      for (node_id other = 0; other < nodes_; ++other) {
        if (other != n) {
          EXPECT_EQ(of(n, other).heard, words(other, n));
        }
      }
    }
  }

  sim::world world;
  unsigned unheard = 0;  // came to a node that had not begun
  unsigned forged = 0;

 private:
  struct end {
    std::unique_ptr<channel> c;
    std::unique_ptr<udp::seal> closes, opens;
    bool greeted = false, has_spoken = false;
    std::int64_t alarm_ns = INT64_MAX;
    std::string heard;
  };
  [[nodiscard]] end& of(node_id n, node_id other) { return ends_[std::size_t{n} * nodes_ + other]; }
  [[nodiscard]] const end& of(node_id n, node_id other) const {
    return ends_[std::size_t{n} * nodes_ + other];
  }
  static std::string words(node_id from, node_id to) {
    return "node " + std::to_string(from) + " greets node " + std::to_string(to);
  }

  void begin(node_id n) {
    began_[n] = true;
    channel::settings s;
    s.out.packet_bytes = datagram_bytes;
    s.tail_bytes = udp::tag_bytes;
    for (node_id other = 0; other < nodes_; ++other) {
      if (other == n) continue;
      end& e = of(n, other);
      e.c = std::make_unique<channel>(n, other, s);
      e.closes = std::make_unique<udp::seal>(key_, 77, n, other, nonces_[n], nonces_[other]);
      e.opens = std::make_unique<udp::seal>(key_, 77, other, n, nonces_[other], nonces_[n]);
      e.c->ping();
      pump(n, other);
    }
  }

  void pump(node_id n, node_id other) {
    end& e = of(n, other);
    if (e.greeted && !std::exchange(e.has_spoken, true)) {
      const std::string mine = words(n, other);
      ASSERT_TRUE(e.c->write(std::as_bytes(std::span(mine)), {}, {}));
    }
    std::vector<std::byte> datagram(datagram_bytes);
    std::uint64_t number = 0;
    while (const std::size_t bytes = e.c->next_packet(datagram, world.now_ns(), number)) {
      e.closes->close(datagram, bytes, number);
      std::vector<std::byte> copy(
          datagram.begin(), datagram.begin() + static_cast<std::ptrdiff_t>(bytes + udp::tag_bytes));
      // Now and then somebody alters one on its way.
      if (world.random.below(10) == 0) {
        std::vector<std::byte> other_words = copy;
        other_words[world.random.below(copy.size())] ^= std::byte{1};
        carry(n, other, std::move(other_words));
      }
      carry(n, other, std::move(copy));
    }
    const std::int64_t due_ns = e.c->due_ns();
    if (due_ns >= e.alarm_ns) return;
    e.alarm_ns = due_ns;
    world.at(due_ns, [this, n, other] {
      end& mine = of(n, other);
      if (mine.alarm_ns > world.now_ns()) return;
      mine.alarm_ns = INT64_MAX;
      mine.c->on_time(world.now_ns());
      pump(n, other);
    });
  }

  void carry(node_id from, node_id to, std::vector<std::byte> datagram) {
    const std::size_t bytes = datagram.size();
    world.carry(from, to, bytes, world.now_ns(),
                [this, from, to, d = std::move(datagram)] { arrive(from, to, d); });
  }

  void arrive(node_id from, node_id to, const std::vector<std::byte>& datagram) {
    if (!began_[to]) {
      ++unheard;
      return;
    }
    end& e = of(to, from);
    udp::packet_head head;
    if (!udp::read_head(datagram, head) || head.source != from || head.destination != to ||
        !e.opens->is_whole(datagram, head.number)) {
      ++forged;
      return;
    }
    e.greeted = true;
    udp::packet p;
    ASSERT_TRUE(udp::read_packet(std::span(datagram).first(datagram.size() - udp::tag_bytes), p));
    ASSERT_NE(e.c->on_packet(p, world.now_ns()), channel::outcome::malformed);
    const auto data = e.c->in().data();
    e.heard.append(reinterpret_cast<const char*>(data.data()), data.size());
    if (!data.empty()) e.c->in().consume(data.size());
    pump(to, from);
  }

  const node_id nodes_;
  launch::job_key key_{};
  std::vector<bool> began_;
  std::vector<std::string> nonces_;
  std::vector<end> ends_;
};

TEST(simulated_udp_joining, hears_everybody_whatever_the_network_loses) {
  unsigned forged = 0;  // the network may lose all that are in one job
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const double loss : {0.0, 0.2, 0.5}) {
      joining_over_udp j(seed, 5, loss);
      EXPECT_TRUE(j.world.run([&] { return j.all_have(false); }, 300 * second_ns));
      EXPECT_GT(j.unheard, 0U);
      EXPECT_TRUE(j.world.run([&] { return j.all_have(true); }, 600 * second_ns));
      j.expect_words_to_arrive();
      forged += j.forged;
    }
  }
  EXPECT_GT(forged, 0U);
}

// Once all have heard each other there is nothing to say.
TEST(simulated_udp_joining, is_quiet_afterwards) {
  joining_over_udp j(1, 5, 0.2);
  EXPECT_TRUE(j.world.run([&] { return j.all_have(true); }, 600 * second_ns));
  EXPECT_FALSE(j.world.run([] { return false; }, j.world.now_ns() + 600 * second_ns));
  const std::uint64_t packets = j.world.packets();
  EXPECT_FALSE(j.world.run([] { return false; }, j.world.now_ns() + 600 * second_ns));
  EXPECT_EQ(j.world.packets(), packets);
  j.expect_words_to_arrive();
}

TEST(simulated_udp_joining, is_replayed_exactly_by_its_seed) {
  const auto outcome = [] {
    joining_over_udp j(7, 5, 0.3);
    EXPECT_TRUE(j.world.run([&] { return j.all_have(true); }, 600 * second_ns));
    return std::tuple(j.world.now_ns(), j.world.packets(), j.world.happenings());
  };
  EXPECT_EQ(outcome(), outcome());
}

}  // namespace
}  // namespace strata::test
