// SPDX-License-Identifier: Apache-2.0
// Nodes that join a job over a network that loses, doubles and reorders, among strangers: each pair
// makes sure of each other exactly once, and nobody else gets in. The handshake is the one that TCP
// uses; below it, in place of TCP, a reliable channel over the simulated packets.
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "net/reliable.hpp"
#include "net/tcp/handshake.hpp"
#include "sim/world.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

using net::tcp::handshake;
using net::tcp::identity;
using net::tcp::refusal;
using octets = std::vector<std::byte>;

// One connection, seen from one side: bytes in, bytes out.
class side {
 public:
  virtual ~side() = default;
  virtual void received(std::span<const std::byte> b) = 0;
  virtual void begin() {}
  std::function<void(octets)> say;
};

class honest : public side {
 public:
  explicit honest(handshake h) : talk_(std::move(h)) {}
  void begin() override { speak(); }
  void received(std::span<const std::byte> b) override {
    pending_.insert(pending_.end(), b.begin(), b.end());
    while (!pending_.empty() && talk_.now() == handshake::state::talking) {
      const std::size_t n = std::min(pending_.size(), talk_.wanted());
      if (n == 0) break;
      talk_.received(std::span(pending_).first(n));
      pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(n));
      speak();
    }
  }
  const handshake& talk() const { return talk_; }

 private:
  void speak() {
    for (auto out = talk_.outgoing(); !out.empty(); out = talk_.outgoing()) {
      const octets copy(out.begin(), out.end());
      talk_.sent(copy.size());
      say(copy);
    }
  }
  handshake talk_;
  octets pending_;
};

// Says what somebody else once said, or nonsense, or half of something.
class strange_side : public side {
 public:
  explicit strange_side(octets words) : words_(std::move(words)) {}
  void begin() override { say(words_); }
  void received(std::span<const std::byte>) override {}

 private:
  octets words_;
};

// Two sides and what lies between them: bytes cut into messages of any length.
class connection {
 public:
  connection(sim::world& w, net::node_id from, net::node_id to, std::unique_ptr<side> caller,
             std::unique_ptr<side> called)
      : in_(w), ends_{end{from, std::move(caller)}, end{to, std::move(called)}} {
    for (unsigned i = 0; i < 2; ++i) {
      ends_[i].channel = std::make_unique<net::reliable_channel>(
          net::reliable_channel::settings{},
          net::reliable_channel::hooks{
              [this, i](const net::reliable_channel::packet& p) { carry(i, p); },
              [this, i](std::span<const std::byte> b) {
                ends_[i].spoken.insert(ends_[i].spoken.end(), b.begin(), b.end());
                ends_[i].who->received(b);
              }});
      ends_[i].who->say = [this, i](const octets& b) {
        // In pieces, as a stream may arrive.
        for (std::size_t at = 0; at < b.size();) {
          const std::size_t n = std::min<std::size_t>(b.size() - at, 1 + in_.random.next() % 60);
          ends_[i].channel->send(octets(b.begin() + static_cast<std::ptrdiff_t>(at),
                                        b.begin() + static_cast<std::ptrdiff_t>(at + n)),
                                 in_.now_ns());
          at += n;
        }
        watch(i);
      };
    }
    in_.at(in_.now_ns() + static_cast<std::int64_t>(in_.random.next() % 1'000'000),
           [this] { ends_[0].who->begin(); });
  }
  const handshake& talk_of(unsigned i) const {
    return dynamic_cast<const honest&>(*ends_[i].who).talk();
  }
  // Everything that the caller has said, as it arrived.
  const octets& said_by_caller() const { return ends_[1].spoken; }

 private:
  struct end {
    net::node_id node;
    std::unique_ptr<side> who;
    std::unique_ptr<net::reliable_channel> channel{};
    std::int64_t timer_at = INT64_MAX;
    octets spoken{};
  };
  void carry(unsigned i, const net::reliable_channel::packet& p) {
    octets copy(p.payload.begin(), p.payload.end());
    in_.carry(ends_[i].node, ends_[1 - i].node, copy.size() + 24, in_.now_ns(),
              [this, i, p, copy = std::move(copy)] {
                net::reliable_channel::packet arrived = p;
                arrived.payload = copy;
                ends_[1 - i].channel->on_packet(arrived, in_.now_ns());
                watch(1 - i);
              });
  }
  void watch(unsigned i) {
    const std::int64_t next = ends_[i].channel->on_time(in_.now_ns());
    if (next >= ends_[i].timer_at) return;
    ends_[i].timer_at = next;
    in_.at(next, [this, i] {
      ends_[i].timer_at = INT64_MAX;
      watch(i);
    });
  }
  sim::world& in_;
  end ends_[2];
};

struct joining {
  sim::world world;
  const net::node_id nodes;
  std::vector<identity> members;
  std::vector<std::set<net::node_id>> joined;  // by acceptor
  std::vector<std::unique_ptr<connection>> connections;
  std::vector<std::unique_ptr<identity>> others;

  joining(net::node_id n, const sim::network_model& network, std::uint64_t seed)
      : world(network, seed), nodes(n), joined(n) {
    for (net::node_id i = 0; i < n; ++i) {
      identity me;
      me.job = 77;
      for (auto& k : me.key) k = static_cast<std::uint8_t>(seed * 7 + 5);
      me.node = i;
      me.nodes = n;
      me.build_id = "one build";
      members.push_back(me);
    }
  }
  net::tcp::nonce nonce() {
    net::tcp::nonce n;
    for (auto& b : n) b = static_cast<std::uint8_t>(world.random.next());
    return n;
  }
  std::unique_ptr<side> acceptor(net::node_id at) {
    return std::make_unique<honest>(handshake::acceptor(
        members[at], [this, at](net::node_id who) { return !joined[at].insert(who).second; },
        nonce()));
  }
  connection& connect(const identity& me, net::node_id to) {
    connections.push_back(std::make_unique<connection>(
        world, me.node, to, std::make_unique<honest>(handshake::connector(me, to, nonce())),
        acceptor(to)));
    return *connections.back();
  }
  connection& intrude(net::node_id as, net::node_id to, octets words) {
    connections.push_back(std::make_unique<connection>(
        world, as, to, std::make_unique<strange_side>(std::move(words)), acceptor(to)));
    return *connections.back();
  }
  const identity& changed(net::node_id who, const std::function<void(identity&)>& change) {
    others.push_back(std::make_unique<identity>(members[who]));
    change(*others.back());
    return *others.back();
  }
  void run() {
    world.run([] { return false; });
  }
};

constexpr sim::network_model bad_network{.jitter_ns = 50'000, .loss = 0.1, .duplication = 0.1};

TEST(simulated_joining, every_pair_makes_sure_of_each_other) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    joining j(6, bad_network, seed);
    std::vector<connection*> pairs;
    for (net::node_id a = 1; a < j.nodes; ++a) {
      for (net::node_id b = 0; b < a; ++b) pairs.push_back(&j.connect(j.members[a], b));
    }
    j.run();
    for (const connection* c : pairs) {
      for (const unsigned i : {0U, 1U}) {
        EXPECT_EQ(c->talk_of(i).now(), handshake::state::joined) << c->talk_of(i).explanation();
      }
    }
    for (net::node_id b = 0; b < j.nodes; ++b) EXPECT_EQ(j.joined[b].size(), j.nodes - 1U - b);
  }
}

// Strangers talk to everybody while the others join: wrong keys, other builds, other jobs, noise,
// halves, and what was overheard of a handshake that succeeded.
TEST(simulated_joining, strangers_stay_outside_and_disturb_nobody) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    octets overheard;
    {
      joining before(2, {}, seed);
      const connection& c = before.connect(before.members[1], 0);
      before.run();
      overheard = c.said_by_caller();
      ASSERT_EQ(c.talk_of(1).now(), handshake::state::joined);
    }
    joining j(4, bad_network, seed);
    struct intruder {
      const connection* c;
      refusal why;
      bool proves;  // it knows the key, so it is told why
    };
    std::vector<intruder> intruders;
    const auto claim = [&](net::node_id who, refusal why,
                           const std::function<void(identity&)>& change) {
      intruders.push_back({&j.connect(j.changed(who, change), 0), why, why != refusal::wrong_key});
    };
    claim(3, refusal::wrong_key, [](identity& i) { i.key[5] ^= 1; });
    claim(3, refusal::other_build, [](identity& i) { i.build_id = "another"; });
    claim(3, refusal::wrong_job, [](identity& i) { i.job = 78; });
    claim(3, refusal::other_version, [](identity& i) { ++i.version; });
    claim(3, refusal::bad_node, [](identity& i) { i.node = 9; });
    std::vector<const connection*> noise;
    for (int i = 0; i < 10; ++i) {
      octets words(j.world.random.next() % 400);
      for (std::byte& b : words) b = static_cast<std::byte>(j.world.random.next());
      noise.push_back(&j.intrude(3, 0, std::move(words)));
      // The beginning of something real, and all of it.
      const std::size_t part = i == 0 ? overheard.size() : j.world.random.next() % overheard.size();
      noise.push_back(&j.intrude(
          1, 0, octets(overheard.begin(), overheard.begin() + static_cast<std::ptrdiff_t>(part))));
    }
    std::vector<connection*> pairs;
    for (net::node_id a = 1; a < j.nodes; ++a) {
      for (net::node_id b = 0; b < a; ++b) pairs.push_back(&j.connect(j.members[a], b));
    }
    j.run();
    for (const connection* c : pairs) {
      EXPECT_EQ(c->talk_of(0).now(), handshake::state::joined) << c->talk_of(0).explanation();
      EXPECT_EQ(c->talk_of(1).now(), handshake::state::joined) << c->talk_of(1).explanation();
    }
    for (const intruder& i : intruders) {
      EXPECT_EQ(i.c->talk_of(1).now(), handshake::state::refused) << net::tcp::name_of(i.why);
      EXPECT_EQ(i.c->talk_of(1).reason(), i.why) << i.c->talk_of(1).explanation();
      EXPECT_NE(i.c->talk_of(0).now(), handshake::state::joined);
    }
    for (const connection* c : noise)
      EXPECT_NE(c->talk_of(1).now(), handshake::state::joined) << c->talk_of(1).explanation();
  }
}

// Two processes that both say they are node 1: one gets in.
TEST(simulated_joining, a_node_joins_once) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    joining j(2, bad_network, seed);
    const connection& a = j.connect(j.members[1], 0);
    const connection& b = j.connect(j.members[1], 0);
    j.run();
    const bool first = a.talk_of(1).now() == handshake::state::joined;
    const connection& in = first ? a : b;
    const connection& out = first ? b : a;
    EXPECT_EQ(in.talk_of(0).now(), handshake::state::joined);
    EXPECT_EQ(out.talk_of(0).now(), handshake::state::refused);
    EXPECT_EQ(out.talk_of(1).reason(), refusal::duplicate_node);
  }
}

}  // namespace
}  // namespace strata::test
