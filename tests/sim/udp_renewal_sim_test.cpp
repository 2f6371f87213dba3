// SPDX-License-Identifier: Apache-2.0
// Two nodes whose connection over UDP ends again and again, and who agree on another one each time:
// over a network that loses, doubles, delays and alters what it likes, is cut for a while, and
// plays back all that was ever said whenever a connection begins. What is heard over a connection
// was said over that one.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "durations.hpp"
#include "net/udp/channel.hpp"
#include "net/udp/renewal_handshake.hpp"
#include "net/udp/seal.hpp"
#include "net/udp/words.hpp"
#include "sim/world.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

namespace udp = net::udp;
using net::node_id;
using udp::channel;
using udp::renewal_handshake;

constexpr std::size_t renewal_bytes = 1'400;
constexpr std::int64_t ms = 1'000'000;

class renewal_over_udp {
 public:
  // Without fresh keys nothing tells the connections apart.
  renewal_over_udp(std::uint64_t seed, double loss, bool fresh_keys = true)
      : world({.jitter_ns = 2 * ms, .loss = loss, .duplication = 0.1}, seed),
        fresh_keys_(fresh_keys) {
    key_.fill(9);
    for (node_id n = 0; n < 2; ++n) {
      renewal_handshake::settings s;
      s.nonce = [this] {
        const std::string number = std::to_string(++nonces_);
        return number + std::string(udp::nonce_bytes - number.size(), '.');
      };
      end& e = ends_[n];
      e.self = n;
      e.m.emplace(n, other(n), s);
      e.closes_words.emplace(key_, 77, n, other(n), first_nonce(n), first_nonce(other(n)),
                             udp::word_seal);
      e.opens_words.emplace(key_, 77, other(n), n, first_nonce(other(n)), first_nonce(n),
                            udp::word_seal);
    }
    ask_again();
  }

  void cut(bool is) { is_cut_ = is; }
  // Both give up what they have, each in its own time.
  void end_connections() {
    ++round_;
    for (end& e : ends_) later(200 * ms, [&e] { e.talks.reset(); });
  }
  // Both hear what the other one says now.
  [[nodiscard]] bool is_there() const {
    return ends_[0].hears_all && ends_[1].hears_all && ends_[0].talks && ends_[1].talks;
  }

  sim::world world;
  unsigned old_words = 0, forged = 0, asked = 0;
  std::string wrong;  // what was heard where it was not said

 private:
  // A connection, at one of its ends.
  struct talk {
    talk(const launch::job_key& key, node_id self, const renewal_handshake::terms& t)
        : c(self, other(self), settings()),
          closes(key, 77, self, other(self), t.mine, t.its),
          opens(key, 77, other(self), self, t.its, t.mine) {}
    static channel::settings settings() {
      channel::settings s;
      s.out.packet_bytes = renewal_bytes;
      s.tail_bytes = udp::tag_bytes;
      return s;
    }
    channel c;
    const udp::seal closes, opens;
    std::string said{}, expected{}, heard{};
  };
  struct end {
    node_id self = 0;
    std::optional<renewal_handshake> m;
    std::optional<udp::seal> closes_words, opens_words;
    std::uint64_t next_word_out = 0, next_word_in = 0;
    std::optional<talk> talks;
    bool hears_all = false;
    std::int64_t alarm_ns = INT64_MAX;
  };
  static node_id other(node_id n) { return static_cast<node_id>(1 - n); }
  static std::string first_nonce(node_id n) {
    return std::string(udp::nonce_bytes, static_cast<char>('a' + n));
  }
  void later(std::int64_t at_most_ns, std::function<void()> what) {
    const auto in_ns = world.random.below(static_cast<std::uint64_t>(at_most_ns));
    world.at(world.now_ns() + static_cast<std::int64_t>(in_ns), std::move(what));
  }

  // As cluster/links/mending does, for as long as nothing is heard.
  void ask_again() {
    if (!is_there()) {
      ++asked;
      ends_[1].m->ask(world.now_ns());
      look_after(ends_[1]);
    }
    world.at(world.now_ns() + second_ns, [this] { ask_again(); });
  }

  void look_after(end& e) {
    (void)e.m->on_time(world.now_ns());
    for (udp::word w; e.m->next_word(world.now_ns(), w);) {
      std::vector<std::byte> datagram(udp::word_bytes + udp::tag_bytes);
      udp::write_word(w, e.self, other(e.self), e.next_word_out++, *e.closes_words, datagram);
      say(e.self, std::move(datagram));
    }
    if (e.talks) pump(e);
    std::int64_t due_ns = e.m->due_ns();
    if (e.talks) due_ns = std::min(due_ns, e.talks->c.due_ns());
    if (due_ns >= e.alarm_ns) return;
    e.alarm_ns = due_ns;
    world.at(due_ns, [this, &e] {
      if (e.alarm_ns > world.now_ns()) return;
      e.alarm_ns = INT64_MAX;
      if (e.talks) e.talks->c.on_time(world.now_ns());
      look_after(e);
    });
  }
  void pump(end& e) {
    std::vector<std::byte> datagram(renewal_bytes);
    std::uint64_t number = 0;
    while (const std::size_t bytes = e.talks->c.next_packet(datagram, world.now_ns(), number)) {
      e.talks->closes.close(datagram, bytes, number);
      say(e.self, {datagram.begin(),
                   datagram.begin() + static_cast<std::ptrdiff_t>(bytes + udp::tag_bytes)});
    }
  }

  // What the network makes of it.
  void say(node_id from, std::vector<std::byte> datagram) {
    const std::uint64_t what = world.random.below(10);
    if (what == 0) {
      std::vector<std::byte> altered = datagram;
      altered[world.random.below(altered.size())] ^= std::byte{1};
      carry(from, std::move(altered));
    } else if (what < 4) {
      later(20 * second_ns, [this, from, datagram] { carry(from, datagram); });
    }
    all_said_[from].push_back(datagram);
    carry(from, std::move(datagram));
  }
  void carry(node_id from, std::vector<std::byte> datagram) {
    const std::size_t bytes = datagram.size();
    world.carry(from, other(from), bytes, world.now_ns(), [this, from, d = std::move(datagram)] {
      if (!is_cut_) arrive(ends_[other(from)], d);
    });
  }

  // As udp_transport.
  void arrive(end& e, const std::vector<std::byte>& datagram) {
    if (udp::is_word(datagram)) return arrive_word(e, datagram);
    udp::packet_head head;
    if (!e.talks || !udp::read_head(datagram, head) || head.destination != e.self ||
        !e.talks->opens.is_whole(datagram, head.number)) {
      ++forged;
      return;
    }
    udp::packet p;
    ASSERT_TRUE(udp::read_packet(std::span(datagram).first(datagram.size() - udp::tag_bytes), p));
    if (e.talks->c.on_packet(p, world.now_ns()) == channel::outcome::malformed) wrong = "malformed";
    const auto data = e.talks->c.in().data();
    e.talks->heard.append(reinterpret_cast<const char*>(data.data()), data.size());
    if (!data.empty()) e.talks->c.in().consume(data.size());
    if (!e.talks->expected.starts_with(e.talks->heard)) wrong = e.talks->heard;
    e.hears_all = e.talks->heard == e.talks->expected;
    look_after(e);
  }
  void arrive_word(end& e, const std::vector<std::byte>& datagram) {
    udp::word_head head{};
    udp::word w;
    if (!udp::read_word_head(datagram, head) || head.number < e.next_word_in ||
        !udp::read_word(datagram, *e.opens_words, w)) {
      ++old_words;
      return;
    }
    e.next_word_in = head.number + 1;
    if (e.m->on_word(w, world.now_ns()) == renewal_handshake::outcome::met)
      // What keeps either end from beginning takes its time (cluster/links/detours).
      later(50 * ms, [this, &e, nonces = e.m->agreed()] { begin(e, nonces); });
    look_after(e);
  }
  void begin(end& e, const renewal_handshake::terms& nonces) {
    const node_id n = e.self;
    const std::string of_both = n == 1 ? nonces.mine + nonces.its : nonces.its + nonces.mine;
    const auto words = [&](node_id who) {
      return "node " + std::to_string(who) + " says over " +
             (fresh_keys_ ? of_both : std::to_string(round_));
    };
    e.talks.emplace(
        key_, n,
        fresh_keys_ ? nonces : renewal_handshake::terms{first_nonce(n), first_nonce(other(n))});
    e.talks->said = words(n);
    e.talks->expected = words(other(n));
    e.hears_all = false;
    const std::vector<std::vector<std::byte>> before = all_said_[other(n)];
    for (const auto& datagram : before) arrive(e, datagram);
    (void)e.talks->c.write(std::as_bytes(std::span(e.talks->said)), {}, {});
    look_after(e);
  }

  const bool fresh_keys_;
  launch::job_key key_{};
  std::array<end, 2> ends_;
  std::array<std::vector<std::vector<std::byte>>, 2> all_said_;
  unsigned nonces_ = 0;
  unsigned round_ = 0;
  bool is_cut_ = false;
};

TEST(simulated_udp_renewal, what_is_heard_over_a_connection_was_said_over_that_one) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const double loss : {0.0, 0.2, 0.5}) {
      renewal_over_udp m(seed, loss);
      for (int round = 0; round < 6; ++round) {
        m.cut(m.world.random.below(2) == 0);
        m.end_connections();
        const auto for_ns = static_cast<std::int64_t>(m.world.random.below(8 * second_ns));
        (void)m.world.run([] { return false; }, m.world.now_ns() + second_ns / 2 + for_ns);
        m.cut(false);
        EXPECT_TRUE(m.world.run([&] { return m.is_there(); }, m.world.now_ns() + 300 * second_ns));
        EXPECT_EQ(m.wrong, "");
      }
      EXPECT_GT(m.old_words, 0U);
      EXPECT_GT(m.forged, 0U);
    }
  }
}

// So the test above would find it out.
TEST(simulated_udp_renewal, without_fresh_keys_old_datagrams_are_heard) {
  renewal_over_udp m(1, 0, false);
  for (int round = 0; round < 3 && m.wrong.empty(); ++round) {
    m.end_connections();
    (void)m.world.run([&] { return !m.wrong.empty(); }, m.world.now_ns() + 10 * second_ns);
  }
  EXPECT_NE(m.wrong, "");
}

// Where the network carries nothing an attempt ends, and nobody speaks any more.
TEST(simulated_udp_renewal, is_in_vain_where_nothing_is_heard) {
  renewal_handshake m(1, 0, {});
  m.ask(0);
  unsigned words = 0;
  std::int64_t at_ns = 0;
  renewal_handshake::outcome became = renewal_handshake::outcome::none;
  for (; m.due_ns() != udp::never_ns; at_ns = m.due_ns()) {
    became = m.on_time(at_ns);
    for (udp::word w; m.next_word(at_ns, w); ++words) EXPECT_EQ(w.says, udp::word::step::call);
    if (became != renewal_handshake::outcome::none) break;
  }
  EXPECT_EQ(became, renewal_handshake::outcome::not_met);
  EXPECT_EQ(m.due_ns(), udp::never_ns);
  EXPECT_EQ(at_ns, 3 * second_ns);
  // 20 ms later, 40, 80, and so on, and then each 500.
  EXPECT_EQ(words, 10U);
}

}  // namespace
}  // namespace strata::test
