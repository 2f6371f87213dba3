// SPDX-License-Identifier: Apache-2.0
// Nodes that connect with each other over TCP while strangers connect to them as well, and say
// nothing, half of something, nonsense, or what a node of another job or of another build would
// say: under a simulated clock, so that who is cut off when is known to the microsecond.
#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connections.hpp"
#include "durations.hpp"
#include "net/tcp/mesh.hpp"
#include "program_job.hpp"
#include "strata/detail/parking.hpp"

namespace strata::test {
namespace {

namespace tcp = net::tcp;
using net::node_id;

// Several ways of a piece, and of an end.
constexpr std::int64_t slack_ns = 5 * program_job::ms;

class town;

// One node's.
class node_ground final : public tcp::mesh_ground {
 public:
  node_ground(town& t, node_id self) : town_(t), self_(self), door("127.0.0.1", 0, 0) {}
  std::int64_t now_ns() override;
  os::descriptor connect(const launch::address& to, std::size_t) override;
  os::descriptor accept(int at, std::string& from) override;
  int wait(std::span<pollfd> what, std::int64_t limit_ns) override;

  void wake();

 private:
  [[nodiscard]] int look(std::span<pollfd> what) const;

  town& town_;
  const node_id self_;
  const char bed_ = 0;  // its address

 public:
  const tcp::listener door;  // nobody comes by it but who is in `knocking`
  std::deque<std::pair<os::descriptor, std::string>> knocking;
};

struct stranger {
  enum class kind { silent, half_a_hello, garbage, half_a_handshake, wrong_key, wrong_build };
  kind what = kind::silent;
  node_id to = 0;
  std::int64_t came_ns = 0;
  std::int64_t cut_off_ns = 0;  // 0: not yet
  os::descriptor line;
  tcp::identity me;
  std::optional<tcp::handshake> talk;
};

class town {
 public:
  town(std::uint64_t seed, node_id nodes) : p(seed, {.nodes = nodes}), roads(p.world) {
    for (node_id n = 0; n < nodes; ++n) {
      grounds.push_back(std::make_unique<node_ground>(*this, n));
      directory.push_back({"10.0.0." + std::to_string(n + 1), 4711});
      options_of.emplace_back();
      options_of.back().ground = grounds.back().get();
      options_of.back().on_refused = [this](const std::string&, tcp::refusal why,
                                            const std::string&) { ++refused[why]; };
    }
    started_ns.resize(nodes);
    deadline_ns.resize(nodes);
    mesh_ended_ns.resize(nodes);
  }
  ~town() {
    strangers.clear();
    grounds.clear();
  }

  [[nodiscard]] tcp::identity identity_of(node_id n) const {
    tcp::identity me;
    me.job = 77;
    me.key.fill(9);
    me.node = n;
    me.nodes = static_cast<node_id>(directory.size());
    me.build_id = "0123abcd";
    return me;
  }

  // What the process of node n does from then on.
  void start(node_id n, std::int64_t when_ns, std::int64_t limit_ns) {
    ++processes_;
    p.world.at(when_ns, [this, n, limit_ns] {
      p.begin(n, [this, n, limit_ns] {
        const tcp::identity me = identity_of(n);
        started_ns[n] = p.now_ns();
        deadline_ns[n] = p.now_ns() + limit_ns;
        std::vector<os::descriptor> all;
        try {
          all = tcp::connect_mesh(me, {&grounds[n]->door, 1}, directory, deadline_ns[n],
                                  options_of[n]);
        } catch (const error& e) {
          failures[n] = e.what();
        }
        mesh_ended_ns[n] = p.now_ns();
        // As its process does: nobody is talked to any more who has not joined.
        grounds[n]->knocking.clear();
        roads.carry();
        if (!failures.contains(n)) greet_all(n, all);
        --processes_;
      });
    });
  }

  void come(std::int64_t when_ns, stranger::kind what, node_id to) {
    strangers.push_back(std::make_unique<stranger>());
    stranger& s = *strangers.back();
    s.what = what;
    s.to = to;
    p.world.at(when_ns, [this, &s] {
      s.came_ns = p.now_ns();
      s.line = open(s.to, [this, &s] { hear(s); });
      begin_to_speak(s);
      roads.carry();
    });
  }

  os::descriptor open(node_id to, connections::notice tells_me) {
    return roads.connect(std::move(tells_me), [this, to](os::descriptor end, std::string from) {
      if (mesh_ended_ns[to] == 0)
        grounds[to]->knocking.emplace_back(std::move(end), std::move(from));
      end.reset();
      roads.carry();
      grounds[to]->wake();
      return [this, to] { grounds[to]->wake(); };
    });
  }

  void run() {
    // Who cannot join says so after 60 s, and may have begun late.
    p.run([&] { return processes_ == 0; }, 100 * second_ns);
  }

  // Nobody is heard longer than a stranger may be, nor once the node has joined all others.
  void expect_all_cut_off() {
    EXPECT_TRUE(p.world.run(
        [&] {
          return std::all_of(strangers.begin(), strangers.end(),
                             [](const auto& s) { return s->cut_off_ns != 0; });
        },
        p.now_ns() + 60 * second_ns));
    for (const auto& s : strangers) {
      const std::int64_t limit = options_of[s->to].stranger_limit_ns;
      const std::int64_t heard_until = std::max(s->came_ns, mesh_ended_ns[s->to]);
      const std::int64_t heard_from = std::max(s->came_ns, started_ns[s->to]);
      EXPECT_LE(s->cut_off_ns, std::min(heard_from + limit, heard_until) + slack_ns)
          << "of kind " << static_cast<int>(s->what) << " at node " << s->to;
      if (s->talk) {
        EXPECT_NE(s->talk->now(), tcp::handshake::state::joined);
      }
    }
  }

  program_job p;
  connections roads;
  std::vector<std::unique_ptr<node_ground>> grounds;
  std::vector<launch::address> directory;
  std::vector<tcp::mesh_options> options_of;
  std::vector<std::int64_t> started_ns, deadline_ns, mesh_ended_ns;
  std::map<node_id, std::string> failures;
  std::map<tcp::refusal, unsigned> refused;
  std::vector<std::unique_ptr<stranger>> strangers;

 private:
  unsigned processes_ = 0;

  // Each connection leads to whom it should.
  void greet_all(node_id self, const std::vector<os::descriptor>& all) {
    for (node_id n = 0; n < all.size(); ++n) {
      EXPECT_EQ(static_cast<bool>(all[n]), n != self);
      const auto mine = static_cast<char>('a' + self);
      if (!all[n]) continue;
      EXPECT_EQ(::send(all[n].get(), &mine, 1, MSG_NOSIGNAL), 1);
    }
    for (node_id n = 0; n < all.size(); ++n) {
      if (!all[n]) continue;
      pollfd there{all[n].get(), POLLIN, 0};
      EXPECT_EQ(grounds[self]->wait(std::span(&there, 1), 60 * second_ns), 1);
      char theirs = 0;
      EXPECT_EQ(::recv(all[n].get(), &theirs, 1, 0), 1);
      EXPECT_EQ(theirs, static_cast<char>('a' + n));
    }
  }

  void begin_to_speak(stranger& s) {
    const tcp::identity real = identity_of(static_cast<node_id>(directory.size() - 1));
    std::string words;
    switch (s.what) {
      case stranger::kind::silent:
        return;
      case stranger::kind::garbage:
        words.resize(1 + p.below(300));
        for (char& c : words) c = static_cast<char>(p.below(256));
        break;
      case stranger::kind::half_a_hello:
      case stranger::kind::half_a_handshake: {
        const auto hello = tcp::handshake::connector(real, s.to, nonce());
        words.assign(reinterpret_cast<const char*>(hello.outgoing().data()),
                     hello.outgoing().size());
        if (s.what == stranger::kind::half_a_hello) words.resize(p.below(words.size()));
        break;
      }
      case stranger::kind::wrong_key:
      case stranger::kind::wrong_build:
        s.me = real;
        if (s.what == stranger::kind::wrong_key)
          s.me.key[p.below(s.me.key.size())] ^= 1;
        else
          s.me.build_id = "ffff";
        s.talk = tcp::handshake::connector(s.me, s.to, nonce());
        return hear(s);
    }
    (void)::send(s.line.get(), words.data(), words.size(), MSG_NOSIGNAL);
  }

  tcp::nonce nonce() {
    tcp::nonce n;
    for (auto& b : n) b = static_cast<std::uint8_t>(p.below(256));
    return n;
  }

  void hear(stranger& s) {
    for (;;) {
      if (s.talk && !s.talk->outgoing().empty()) {
        const auto out = s.talk->outgoing();
        const ssize_t n = ::send(s.line.get(), out.data(), out.size(), MSG_NOSIGNAL);
        if (n <= 0) break;
        s.talk->sent(static_cast<std::size_t>(n));
        continue;
      }
      std::array<std::byte, 256> bytes;
      const std::size_t wanted = s.talk && s.talk->wanted() != 0 ? s.talk->wanted() : bytes.size();
      const ssize_t n = ::recv(s.line.get(), bytes.data(), std::min(wanted, bytes.size()), 0);
      if (n < 0 && errno == EAGAIN) break;
      if (n <= 0) {
        if (s.cut_off_ns == 0) s.cut_off_ns = p.now_ns();
        s.line.reset();
        break;
      }
      if (s.talk && s.talk->wanted() != 0)
        s.talk->received(std::span(bytes).first(static_cast<std::size_t>(n)));
    }
    roads.carry();
  }
};

std::int64_t node_ground::now_ns() { return town_.p.now_ns(); }

os::descriptor node_ground::connect(const launch::address& to, std::size_t) {
  const auto at = std::find_if(town_.directory.begin(), town_.directory.end(),
                               [&](const auto& a) { return a.host == to.host; });
  return town_.open(static_cast<node_id>(at - town_.directory.begin()), [this] { wake(); });
}

os::descriptor node_ground::accept(int at, std::string& from) {
  EXPECT_EQ(at, door.get());
  if (knocking.empty()) {
    errno = EAGAIN;
    return {};
  }
  os::descriptor first = std::move(knocking.front().first);
  from = std::move(knocking.front().second);
  knocking.pop_front();
  return first;
}

int node_ground::look(std::span<pollfd> what) const {
  EXPECT_GE(::poll(what.data(), what.size(), 0), 0);
  int ready = 0;
  for (pollfd& one : what) {
    if (one.fd == door.get() && !knocking.empty()) one.revents = POLLIN;
    ready += one.revents != 0 ? 1 : 0;
  }
  return ready;
}

int node_ground::wait(std::span<pollfd> what, std::int64_t limit_ns) {
  const std::int64_t end_ns = now_ns() + limit_ns;
  bool has_alarm = false;
  for (;;) {
    town_.roads.carry();
    if (const int ready = look(what); ready != 0 || now_ns() >= end_ns) return ready;
    if (!std::exchange(has_alarm, true)) town_.p.world.at(end_ns, [this] { wake(); });
    (void)detail::park({.what = "connections", .address = &bed_});
  }
}

void node_ground::wake() {
  town_.p.job->node(self_).as_worker([this] { detail::unpark(&bed_, 1); });
}

constexpr std::array kinds{stranger::kind::silent,    stranger::kind::half_a_hello,
                           stranger::kind::garbage,   stranger::kind::half_a_handshake,
                           stranger::kind::wrong_key, stranger::kind::wrong_build};

// The last node comes late enough for the strangers' time to be over before.
void join_among_strangers(town& t, unsigned strangers) {
  const auto nodes = static_cast<node_id>(t.directory.size());
  std::int64_t last_ns = 5 * second_ns;
  for (node_id n = 0; n < nodes; ++n) {
    const auto late_ns = static_cast<std::int64_t>(t.p.below(2 * second_ns));
    if (n + 1 == nodes) last_ns += late_ns;
    t.start(n, n + 1 == nodes ? last_ns : late_ns, 60 * second_ns);
  }
  for (unsigned i = 0; i < strangers; ++i)
    t.come(static_cast<std::int64_t>(t.p.below(6 * second_ns)), kinds[i % kinds.size()],
           static_cast<node_id>(t.p.below(nodes)));
  t.run();
  EXPECT_TRUE(t.failures.empty()) << t.failures.begin()->second;
  for (node_id n = 0; n < nodes; ++n) {
    // Nobody has waited for any of the strangers.
    EXPECT_LE(t.mesh_ended_ns[n], last_ns + slack_ns) << "node " << n;
  }
  t.expect_all_cut_off();
}

TEST(simulated_strangers, are_cut_off_in_time_and_keep_nobody_from_joining) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    town t(seed, 4);
    join_among_strangers(t, 60);
    EXPECT_GT(t.refused[tcp::refusal::wrong_key], 0U);
    EXPECT_GT(t.refused[tcp::refusal::other_build], 0U);
    EXPECT_GT(t.refused[tcp::refusal::not_strata], 0U);
    for (const auto& s : t.strangers) {
      if (!s->talk) continue;
      // Who has the wrong key is told nothing, who runs another build what it needs to know.
      const bool knows_key = s->what == stranger::kind::wrong_build;
      if (!knows_key) {
        EXPECT_FALSE(s->talk->proved());
      } else if (s->talk->now() == tcp::handshake::state::refused) {
        EXPECT_EQ(s->talk->reason(), tcp::refusal::other_build);
      }
    }
  }
}

// Of who says nothing, or not enough: it has the time that it may take, as long as there are not
// too many.
TEST(simulated_strangers, are_not_cut_off_before_their_time) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    town t(seed, 2);
    t.start(0, 0, 60 * second_ns);
    t.start(1, 10 * second_ns, 60 * second_ns);
    for (unsigned i = 0; i < 30; ++i) {
      const auto what = std::array{stranger::kind::silent, stranger::kind::half_a_hello,
                                   stranger::kind::half_a_handshake}[i % 3];
      t.come(static_cast<std::int64_t>(t.p.below(7 * second_ns)), what, 0);
    }
    t.run();
    EXPECT_TRUE(t.failures.empty());
    t.expect_all_cut_off();
    for (const auto& s : t.strangers)
      EXPECT_GE(s->cut_off_ns, s->came_ns + t.options_of[0].stranger_limit_ns);
  }
}

// Far more at once than a node hears: some nodes lose their places among them, and try again.
TEST(simulated_strangers, in_crowds_keep_nobody_from_joining) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    town t(seed, 4);
    for (tcp::mesh_options& o : t.options_of) o.strangers_max = 16;
    for (node_id n = 0; n < 4; ++n)
      t.start(n, static_cast<std::int64_t>(t.p.below(20 * program_job::ms)), 60 * second_ns);
    for (int crowd = 0; crowd < 4; ++crowd) {
      const auto when_ns = static_cast<std::int64_t>(t.p.below(25 * program_job::ms));
      const auto to = static_cast<node_id>(t.p.below(2));
      for (unsigned i = 0; i < 30; ++i)
        t.come(when_ns + static_cast<std::int64_t>(t.p.below(100'000)),
               kinds[t.p.below(kinds.size())], to);
    }
    t.run();
    EXPECT_TRUE(t.failures.empty()) << t.failures.begin()->second;
    t.expect_all_cut_off();
  }
}

// At the deadline, and not before or after, everybody says who is missing, whatever strangers say
// meanwhile.
TEST(simulated_strangers, are_not_taken_for_a_node_that_is_missing) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 4;
    town t(seed, nodes);
    const auto missing = static_cast<node_id>(t.p.below(nodes));
    for (node_id n = 0; n < nodes; ++n) {
      if (n != missing) t.start(n, static_cast<std::int64_t>(t.p.below(second_ns)), 10 * second_ns);
    }
    for (unsigned i = 0; i < 60; ++i) {
      auto to = static_cast<node_id>(t.p.below(nodes));
      if (to == missing) to = static_cast<node_id>((to + 1) % nodes);
      t.come(static_cast<std::int64_t>(t.p.below(12 * second_ns)), kinds[i % kinds.size()], to);
    }
    t.run();
    EXPECT_EQ(t.failures.size(), nodes - 1U);
    for (const auto& [n, why] : t.failures) {
      EXPECT_EQ(t.mesh_ended_ns[n], t.deadline_ns[n]);
      const std::string wanted =
          "node " + std::to_string(n) + " waited in vain for node " + std::to_string(missing);
      EXPECT_EQ(why.substr(0, wanted.size()), wanted);
    }
    t.expect_all_cut_off();
  }
}

TEST(simulated_strangers, are_replayed_exactly_by_their_seed) {
  const auto outcome = [] {
    town t(7, 4);
    join_among_strangers(t, 60);
    return t.p.outcome();
  };
  EXPECT_EQ(outcome(), outcome());
}

}  // namespace
}  // namespace strata::test
