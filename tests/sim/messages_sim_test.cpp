// SPDX-License-Identifier: Apache-2.0
// Messages between the endpoints of many simulated nodes, over a network that misbehaves: all
// arrive once, in the order of their stream, within the room that there is.
#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "../common/known_bytes.hpp"
#include "messages/messenger.hpp"
#include "sim/simulated_job.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

using messages::action;
using messages::port;
using messages::request;

struct stamp {
  std::uint64_t source, target;
  std::uint32_t tag, number;
};

// What follows it.
constexpr std::size_t filling_max = 300'000;
std::vector<std::byte> filling(const stamp& s, std::size_t size) {
  return known_bytes<filling_max>(s.number * 13 + s.tag, size);
}

// One endpoint and the program that uses it.
struct talker {
  net::node_id node = 0;
  messages::messenger* messenger = nullptr;
  port* where = nullptr;
  endpoint_id id;
  struct sending {
    request r;
    std::vector<std::byte> bytes;
  };
  struct receiving {
    request r;
    std::vector<std::byte> bytes;
    bool is_taken = false;
  };
  std::deque<std::unique_ptr<sending>> sends;
  std::deque<std::unique_ptr<receiving>> receives;  // in the order in which they were posted
  std::map<std::tuple<endpoint_id, message_tag>, std::uint32_t> next;
  int received_before = 0;  // by all
  std::uint64_t pause_max_ns = 200'000;
};

class conversation {
 public:
  conversation(net::node_id nodes, const sim::network_model& network, std::uint64_t seed,
               const cluster::routes::link_cost& links = {},
               std::size_t transfer_bytes_min = net::transfers::never)
      : world_(network, seed) {
    const sim::job_model model{
        .nodes = nodes, .links = links, .transfer_bytes_min = transfer_bytes_min};
    job_ = std::make_unique<sim::job>(world_, model);
    for (net::node_id n = 0; n < nodes; ++n) {
      for (int i = 0; i < 3; ++i) {
        auto t = std::make_unique<talker>();
        t->node = n;
        t->messenger = &job_->node(n).messenger;
        t->where = &t->messenger->open();
        t->id = t->where->id;
        talkers_.push_back(std::move(t));
      }
    }
  }
  ~conversation() {
    over_ = true;
    for (auto& t : talkers_) {
      t->messenger->close(t->id, *t->where);
      // What could not be sent is nobody's any more.
      for (auto& s : t->sends) (void)t->messenger->cancel(s->r);
    }
    world_.run([] { return false; });
  }

  // Every talker sends so many messages to anybody; returns when all have been received.
  void run(int each) {
    wanted_ = each * static_cast<int>(talkers_.size());
    for (auto& t : talkers_) step(*t, each);
    EXPECT_TRUE(world_.run([&] { return received_ == wanted_ && all_sends_ended(); }))
        << received_ << " of " << wanted_ << " messages arrived";
    EXPECT_EQ(job_->failure(), nullptr);
    check_order();
  }

  sim::world& world() { return world_; }
  sim::job& job() { return *job_; }
  std::uint64_t received() const { return static_cast<std::uint64_t>(received_); }

 private:
  prng& random() { return world_.random; }

  void step(talker& t, int left) {
    if (over_) return;
    for (auto i = random().next() % 4; i > 0 && left > 0; --i, --left) send(t);
    for (auto i = random().next() % 3; i > 0; --i) post(t);
    for (auto& r : t.receives) take(*r);
    while (!t.sends.empty() && t.sends.front()->r.is_done()) t.sends.pop_front();
    if (left == 0 && received_ == wanted_ && t.sends.empty()) return;
    // While nothing arrives, because something lost is sent again only after a second, more and
    // more seldom: each look costs as much as there are receives.
    const bool waits = left == 0 && t.received_before == received_;
    t.received_before = received_;
    t.pause_max_ns = waits ? std::min<std::uint64_t>(2 * t.pause_max_ns, 50'000'000) : 200'000;
    const auto pause = static_cast<std::int64_t>(random().next() % t.pause_max_ns);
    world_.at(world_.now_ns() + pause, [this, &t, left] { step(t, left); });
  }

  void send(talker& t) {
    talker& to = *talkers_[random().next() % talkers_.size()];
    const auto tag = static_cast<message_tag>(random().next() % 3);
    const std::uint64_t kind = random().next() % 20;
    const std::size_t more = kind == 0  ? random().next() % filling_max
                             : kind < 5 ? random().next() % 20'000
                                        : random().next() % 100;
    const stamp s{t.id.bits(), to.id.bits(), tag, ++numbers_[{t.id, to.id, tag}]};
    auto m = std::make_unique<talker::sending>();
    m->bytes.resize(sizeof(s));
    std::memcpy(m->bytes.data(), &s, sizeof(s));
    const std::vector<std::byte> rest = filling(s, more);
    m->bytes.insert(m->bytes.end(), rest.begin(), rest.end());
    m->r.what = random().next() % 8 == 0 ? action::send_synchronously : action::send;
    m->r.messenger = t.messenger;
    m->r.mine = t.where;
    m->r.from = m->bytes;
    m->r.info = {t.id, to.id, tag, m->bytes.size()};
    t.messenger->send(m->r);
    t.sends.push_back(std::move(m));
  }

  void post(talker& t) {
    auto r = std::make_unique<talker::receiving>();
    r->r.what = action::receive;
    r->r.messenger = t.messenger;
    r->r.mine = t.where;
    r->r.whole = &r->bytes;
    if (random().next() % 3 == 0) r->r.wanted.tag = static_cast<message_tag>(random().next() % 3);
    const talker& of = *talkers_[random().next() % talkers_.size()];
    const std::uint64_t whose = random().next() % 6;
    if (whose == 0) r->r.wanted.source = of.id;
    if (whose == 1) r->r.wanted.source = any_endpoint_on(of.node);
    r->r.info.target = t.id;
    t.messenger->receive(r->r);
    t.receives.push_back(std::move(r));
    // Not too many that may never fit: an open one at the end of each dozen.
    if (t.receives.size() % 12 == 0 && t.receives.back()->r.wanted.shape() != 0) {
      talker::receiving& last = *t.receives.back();
      if (t.messenger->cancel(last.r)) {
        t.receives.pop_back();
        post(t);
      }
    }
  }

  void take(talker::receiving& r) {
    if (r.is_taken || !r.r.is_done()) return;
    r.is_taken = true;
    EXPECT_NO_THROW((void)r.r.result());
    ++received_;
    stamp s;
    ASSERT_GE(r.bytes.size(), sizeof(s));
    std::memcpy(&s, r.bytes.data(), sizeof(s));
    EXPECT_EQ(s.source, r.r.info.source.bits());
    EXPECT_EQ(s.target, r.r.info.target.bits());
    EXPECT_EQ(s.tag, r.r.info.tag);
    const auto rest = std::span<const std::byte>(r.bytes).subspan(sizeof(s));
    ASSERT_LE(rest.size(), filling_max);
    EXPECT_TRUE(same(rest, filling(s, rest.size()))) << rest.size() << " bytes";
  }

  bool all_sends_ended() {
    for (auto& t : talkers_) {
      for (auto& s : t->sends) {
        if (!s->r.is_done()) return false;
      }
    }
    return true;
  }

  // Of two receives that both fit, the older one has got the older message.
  void check_order() {
    for (auto& t : talkers_) {
      std::map<std::pair<std::uint64_t, message_tag>, std::set<std::uint32_t>> numbers;
      for (auto& r : t->receives) {
        if (!r->r.is_done()) continue;
        stamp s;
        std::memcpy(&s, r->bytes.data(), sizeof(s));
        auto& seen = numbers[{s.source, s.tag}];
        EXPECT_TRUE(seen.empty() || *seen.rbegin() < s.number);
        EXPECT_TRUE(seen.insert(s.number).second) << "a message arrived twice";
      }
    }
  }

  sim::world world_;
  std::unique_ptr<sim::job> job_;
  std::vector<std::unique_ptr<talker>> talkers_;
  std::map<std::tuple<endpoint_id, endpoint_id, message_tag>, std::uint32_t> numbers_;
  int received_ = 0, wanted_ = 0;
  bool over_ = false;
};

TEST(simulated_messages, arrive_once_and_in_order) {
  const sim::network_model bad{.jitter_ns = 30'000, .loss = 0.05, .duplication = 0.05};
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    conversation c(4, bad, seed);
    c.run(60);
  }
}

// Some large ones by the network's transfers, some in pieces.
TEST(simulated_messages, arrive_by_transfers_too) {
  const sim::network_model bad{.jitter_ns = 30'000, .loss = 0.05, .duplication = 0.05};
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    conversation c(4, bad, seed, {}, 100'000);
    c.run(60);
    message_statistics all;
    for (net::node_id n = 0; n < 4; ++n) {
      const message_statistics one = c.job().node(n).messenger.counted();
      all.moved += one.moved;
      all.pulled += one.pulled;
    }
    EXPECT_GT(all.moved, 0U);
    EXPECT_GT(all.pulled, 0U);
  }
}

// Nothing is lost or counted twice, no room is, and no request is left behind.
TEST(simulated_messages, arrive_where_there_is_often_no_memory_to_send_them) {
  std::vector<std::uint64_t> all = seeds();
  // There the last message is received while room for others is still being given back.
  if (all.size() > 1) all.push_back(13'697'567'149'616);
  for (const std::uint64_t seed : all) {
    STRATA_WITH_SEED(seed);
    constexpr net::node_id nodes = 3;
    conversation c(nodes, {}, seed, {}, seed % 2 == 0 ? 50'000 : net::transfers::never);
    prng random(seed);
    unsigned refused = 0;
    for (net::node_id n = 0; n < nodes; ++n) {
      c.job().node(n).says = [&](net::node_id, cluster::kind k) {
        if (!cluster::carries_work(k) || random.below(3) != 0) return;
        ++refused;
        throw std::bad_alloc();
      };
    }
    c.run(200);
    EXPECT_GT(refused, 100U);
    // What is still under way is counted at one end only.
    EXPECT_FALSE(c.world().run([] { return false; }));
    std::uint64_t sent = 0, received = 0;
    for (net::node_id n = 0; n < nodes; ++n) {
      c.job().node(n).says = nullptr;
      sent += c.job().node(n).protocols.counts.sent;
      received += c.job().node(n).protocols.counts.received;
    }
    EXPECT_EQ(sent, received);
  }
}

// Along a row of nodes: the first and the last share no network.
TEST(simulated_messages, arrive_by_other_nodes) {
  const sim::network_model bad{.jitter_ns = 30'000, .loss = 0.05, .duplication = 0.05};
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    conversation c(4, bad, seed, [](net::node_id a, net::node_id b) {
      return a + 1 == b || b + 1 == a ? std::optional<std::int64_t>(1) : std::nullopt;
    });
    c.run(60);
    EXPECT_GT(c.job().node(1).forwarded(), 0U);
    EXPECT_GT(c.job().node(2).forwarded(), 0U);
    EXPECT_EQ(c.job().node(0).forwarded(), 0U);
  }
}

TEST(simulated_messages, are_replayed_exactly_by_their_seed) {
  const sim::network_model bad{.jitter_ns = 30'000, .loss = 0.05};
  const auto outcome = [&] {
    conversation c(3, bad, 7);
    c.run(20);
    return std::tuple(c.world().now_ns(), c.world().packets(), c.world().happenings());
  };
  EXPECT_EQ(outcome(), outcome());
}

// More small messages than there is room for, and the one that is wanted first may have been sent
// last: it is found all the same, whether its receiver waits for it or looks for it again and
// again. (What does not fit waits with its sender; that it must not is told by the receiver.)
void find_each_in_turn(std::uint64_t seed, bool waits) {
  const sim::network_model network{.jitter_ns = 20'000, .loss = 0.02};
  sim::world world(network, seed);
  sim::job job(world, {.nodes = 3});
  messages::messenger& there = job.node(2).messenger;
  port& to = there.open();
  const endpoint_id target = to.id;
  struct source {
    messages::messenger* messenger;
    port* from;
    endpoint_id id;
  };
  std::vector<source> sources;
  for (const net::node_id n : {0, 1}) {
    messages::messenger& messenger = job.node(n).messenger;
    port& from = messenger.open();
    sources.push_back({&messenger, &from, from.id});
  }
  constexpr message_tag each = 3000;
  std::vector<std::unique_ptr<request>> sends;
  std::vector<std::pair<endpoint_id, message_tag>> order;
  const std::vector<std::byte> content(20'000);
  for (message_tag tag = 0; tag < each; ++tag) {
    for (const source& s : sources) {
      sends.push_back(std::make_unique<request>());
      request& r = *sends.back();
      const std::uint64_t dice = world.random.next();
      r.what = dice % 16 == 0 ? action::send_synchronously : action::send;
      r.messenger = s.messenger;
      r.mine = s.from;
      r.from = std::span(content).first((dice >> 8) % (dice % 8 == 1 ? 20'000 : 1500));
      r.info = {s.id, target, tag, r.from.size()};
      world.at(tag * 100, [&s, &r] { s.messenger->send(r); });
      order.emplace_back(s.id, tag);
    }
  }
  // From the back in places, so that much has to be kept meanwhile.
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[world.random.next() % i]);

  std::size_t found = 0;
  request wanted;
  std::vector<std::byte> bytes;
  std::function<void()> step = [&] {
    if (wanted.what == action::receive && wanted.messenger != nullptr) {
      if (!wanted.is_done()) return world.at(world.now_ns() + 5'000, step);
      EXPECT_EQ(wanted.result().tag, order[found].second);
      ++found;
      std::destroy_at(&wanted);
      std::construct_at(&wanted);
    }
    if (found == order.size() || world.now_ns() > 300'000'000'000) return;
    const messages::pattern next{order[found].first, order[found].second};
    if (waits || there.probe(to, target, next)) {
      wanted.messenger = &there;
      wanted.mine = &to;
      wanted.whole = &bytes;
      wanted.wanted = next;
      wanted.info.target = target;
      there.receive(wanted);
    }
    world.at(world.now_ns() + 5'000, step);
  };
  world.at(50'000, step);
  EXPECT_TRUE(world.run([&] {
    return found == order.size() &&
           std::all_of(sends.begin(), sends.end(), [](auto& r) { return r->is_done(); });
  })) << found
      << " of " << order.size();
  EXPECT_EQ(job.failure(), nullptr);
  there.close(target, to);
  for (const source& s : sources) s.messenger->close(s.id, *s.from);
}

TEST(simulated_messages, are_found_behind_more_than_there_is_room_for) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    find_each_in_turn(seed, true);
    find_each_in_turn(seed, false);
  }
}

}  // namespace
}  // namespace strata::test
