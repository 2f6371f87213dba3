// SPDX-License-Identifier: Apache-2.0
// Jobs in which nothing moves any more, and jobs that only look like it: who waits is told, by node
// and by name, and nobody is told of a stall while anything moves. Over a network that loses,
// doubles and is cut, with nodes that die.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ask_fib.hpp"
#include "messages/messenger.hpp"
#include "sim/simulated_job.hpp"
#include "strata/fiber.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t stall_ns = 40'000'000;  // without progress
// Until then it has been told: node 0 looks, asks, waits for who does not answer, and asks again.
constexpr std::int64_t told_by_ns = 6 * stall_ns;

struct told_stall {
  std::int64_t at_ns;
  std::string text;

  [[nodiscard]] bool says(const std::string& what) const {
    return text.find(what) != std::string::npos;
  }
};

class stalling_job {
 public:
  stalling_job(sim::job_model m, std::uint64_t seed, const sim::network_model& network)
      : world(network, seed) {
    m.stalls_after_ns = stall_ns;
    m.channel.first_timeout_ns = m.channel.most_timeout_ns = 1'000'000;
    job = std::make_unique<sim::job>(world, m);
    job->when_stalled = [this](const std::string& text) { told.push_back({world.now_ns(), text}); };
    for (net::node_id n = 0; n < job->size(); ++n) open(n);
  }
  ~stalling_job() {
    for (const talker& t : talkers_) job->node(t.node).messenger.close(t.id, *t.where);
  }

  static sim::job_model model(net::node_id nodes) {
    return {.nodes = nodes, .cost = two_microseconds, .answers_while_busy = true};
  }

  // As a thread with a name would.
  void let_receive(net::node_id n, net::node_id from) {
    job->node(n).waiting["a word for thread " + std::to_string(n)] = false;
    messages::request& r = make(messages::action::receive, n);
    r.into = std::as_writable_bytes(std::span(&word_, 1));
    r.wanted.source = talkers_[from].id;
    r.info.target = talkers_[n].id;
    r.messenger->receive(r);
  }
  void send(net::node_id from, net::node_id to) {
    job->node(to).waiting.clear();
    messages::request& r = make(messages::action::send, from);
    r.from = std::as_bytes(std::span(&sent_, 1));
    r.info = {talkers_[from].id, talkers_[to].id, 1, sizeof sent_};
    r.messenger->send(r);
  }

  void run_for(std::int64_t ns) {
    world.run([] { return false; }, world.now_ns() + ns);
  }
  // Some time in there.
  std::int64_t drawn(std::int64_t from_ns, std::int64_t to_ns) {
    return from_ns + static_cast<std::int64_t>(
                         world.random.below(static_cast<std::uint64_t>(to_ns - from_ns)));
  }

  // One report, which names each of `waiting`, in the order of their nodes.
  void expect_told_of(const std::set<net::node_id>& waiting) {
    ASSERT_EQ(told.size(), 1U);
    std::size_t at = 0;
    for (const net::node_id n : waiting) {
      const std::string node = "strata: node " + std::to_string(n) + "\n";
      const std::string thread = "a thread waits for a word for thread " + std::to_string(n) + "\n";
      const std::size_t of_node = told[0].text.find(node, at);
      ASSERT_NE(of_node, std::string::npos) << node << told[0].text;
      at = told[0].text.find(thread, of_node);
      ASSERT_NE(at, std::string::npos) << thread << told[0].text;
    }
  }

  sim::world world;
  std::unique_ptr<sim::job> job;
  std::vector<told_stall> told;

 private:
  struct talker {
    net::node_id node;
    messages::port* where;
    endpoint_id id;
  };
  void open(net::node_id n) {
    messages::port& p = job->node(n).messenger.open();
    talkers_.push_back({n, &p, p.id});
  }
  messages::request& make(messages::action what, net::node_id at) {
    messages::request& r = *requests_.emplace_back(std::make_unique<messages::request>());
    r.what = what;
    r.messenger = &job->node(at).messenger;
    r.mine = talkers_[at].where;
    return r;
  }

  std::vector<talker> talkers_;  // by node
  std::vector<std::unique_ptr<messages::request>> requests_;
  std::uint64_t word_ = 0;
  const std::uint64_t sent_ = 1;
};

constexpr sim::network_model stalled_network{
    .jitter_ns = 30'000, .loss = 0.05, .duplication = 0.05};

std::set<net::node_id> all_of(net::node_id nodes) {
  std::set<net::node_id> all;
  for (net::node_id n = 0; n < nodes; ++n) all.insert(n);
  return all;
}

// Each waits for the next one, and would say something itself after that.
void wait_in_a_circle(stalling_job& j) {
  const auto nodes = static_cast<net::node_id>(j.job->size());
  for (net::node_id n = 0; n < nodes; ++n)
    j.let_receive(n, static_cast<net::node_id>((n + 1) % nodes));
}

// ---- stalls ----

TEST(simulated_stalls, of_a_message_that_nobody_sends_are_told_with_who_waits_for_it) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    stalling_job j(stalling_job::model(4), seed, stalled_network);
    answer a;
    j.job->node(0).as_worker([&] { token<ask_fib>(15, &a); });
    j.let_receive(0, 2);
    j.run_for(told_by_ns);
    EXPECT_EQ(a.value, 610);
    j.expect_told_of({0});
    EXPECT_TRUE(j.told[0].says("nothing moves on any node any more")) << j.told[0].text;
    EXPECT_TRUE(j.told[0].says("1 receives wait for a message")) << j.told[0].text;
    EXPECT_FALSE(j.told[0].says("no answer")) << j.told[0].text;
    EXPECT_GE(j.told[0].at_ns, stall_ns);
  }
}

TEST(simulated_stalls, of_nodes_that_wait_for_each_other_in_a_circle_are_told_with_all_of_them) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const net::node_id nodes : {1, 2, 7}) {
      stalling_job j(stalling_job::model(nodes), seed, stalled_network);
      wait_in_a_circle(j);
      j.run_for(told_by_ns);
      j.expect_told_of(all_of(nodes));
      EXPECT_EQ(j.job->node(0).stalls.rounds(), 2U);
    }
  }
}

// So many that not all can be quoted: those who wait are.
TEST(simulated_stalls, of_a_large_job_are_told_in_few_lines) {
  constexpr net::node_id nodes = 300;
  stalling_job j(stalling_job::model(nodes), 1, {});
  for (const net::node_id n : {0, 100, 299}) j.let_receive(n, 50);
  j.run_for(told_by_ns);
  j.expect_told_of({0, 100, 299});
  EXPECT_TRUE(j.told[0].says("nobody waits on 234 more nodes")) << j.told[0].text;
}

TEST(simulated_stalls, are_told_once_and_again_only_after_progress) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    stalling_job j(stalling_job::model(3), seed, stalled_network);
    wait_in_a_circle(j);
    j.run_for(10 * told_by_ns);
    j.expect_told_of(all_of(3));
    j.send(1, 0);
    j.let_receive(0, 2);
    j.run_for(told_by_ns);
    ASSERT_EQ(j.told.size(), 2U);
    EXPECT_TRUE(j.told[1].says("a word for thread 0")) << j.told[1].text;
  }
}

// What a node that leaves hands over is in its answer, too: the round that is under way counts it
// once.
TEST(simulated_stalls, are_told_with_the_counts_of_who_leaves_while_it_is_asked) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    stalling_job j(stalling_job::model(4), seed, stalled_network);
    wait_in_a_circle(j);
    sim::simulated_node& asker = j.job->node(0);
    ASSERT_TRUE(j.world.run([&] { return asker.stalls.rounds() == 2; }, told_by_ns));
    ASSERT_TRUE(j.told.empty());
    asker.protocols.quiet.inherit(1, 0);
    j.run_for(told_by_ns);
    j.expect_told_of(all_of(4));
    EXPECT_TRUE(j.told[0].says("nothing moves on any node any more")) << j.told[0].text;
  }
}

// To look at all who wait may take long, so who handles the question does not; and of questions
// that have come meanwhile only the last is of use.
TEST(simulated_stalls, are_asked_about_by_messages_that_are_handled_at_once) {
  stalling_job j(stalling_job::model(2), 1, {});
  std::vector<std::uint32_t> answered;
  j.job->node(0).hears = [&](net::node_id, cluster::kind k, std::span<const std::byte> payload) {
    if (k != cluster::kind::waits_here) return false;
    std::uint32_t round = 0;
    std::memcpy(&round, payload.data(), sizeof round);
    answered.push_back(round);
    return true;
  };
  for (const std::uint32_t round : {1U, 2U}) {
    const std::array<std::uint32_t, 2> question{round, 1};
    j.job->node(1).handle(0, cluster::kind::who_waits, std::as_bytes(std::span(question)));
  }
  j.run_for(stall_ns / 2);
  EXPECT_EQ(answered, std::vector<std::uint32_t>{2});
}

// ---- what is none ----

TEST(simulated_stalls, are_not_told_of_where_nobody_waits) {
  stalling_job j(stalling_job::model(3), 1, {});
  j.run_for(10 * told_by_ns);
  EXPECT_TRUE(j.told.empty());
  EXPECT_EQ(j.job->node(0).stalls.rounds(), 0U);
}

// Nor of what may come from outside, to any node.
TEST(simulated_stalls, are_not_told_of_while_somebody_waits_for_the_world) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    stalling_job j(stalling_job::model(4), seed, stalled_network);
    wait_in_a_circle(j);
    const auto server = static_cast<net::node_id>(j.world.random.below(4));
    j.job->node(server).waiting["a file descriptor"] = true;
    j.run_for(10 * told_by_ns);
    EXPECT_TRUE(j.told.empty()) << j.told[0].text;
    j.job->node(server).waiting.erase("a file descriptor");
    j.run_for(told_by_ns);
    j.expect_told_of(all_of(4));
  }
}

// A token that goes from node to node, and takes its time at each.
struct wandering : threaded {
  prng* random;
  unsigned nodes, left;
  bool* is_over;
  void start() {
    if (left == 0) {
      *is_over = true;
    } else {
      invoke<wandering>(static_cast<node_id_t>(random->below(nodes)), local_address(random), nodes,
                        left - 1, local_address(is_over));
    }
    terminate();
  }
};

// Tasks that take longer than that, messages that take a part of it, and one thing at a time: on
// all other nodes nothing ever moves, and often it moves on none, as a message is on its way.
TEST(simulated_stalls, are_not_told_of_while_anything_moves) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    prng random(seed);
    sim::network_model slow = stalled_network;
    slow.latency_ns = stall_ns / 20;
    const auto nodes = static_cast<net::node_id>(2 + random.below(5));
    sim::job_model m = stalling_job::model(nodes);
    // Else silence says nothing, as a node that computes hears nothing.
    m.answers_while_busy = random.below(3) != 0;
    m.cost = [&random](const detail::task&) {
      const std::uint64_t longest = random.below(3) == 0 ? 3 * stall_ns : stall_ns / 30;
      return static_cast<std::int64_t>(1'000 + random.below(longest));
    };
    stalling_job j(m, seed, slow);
    wait_in_a_circle(j);
    bool is_over = false;
    j.job->node(0).as_worker(
        [&] { invoke<wandering>(1, local_address(&random), nodes, 60U, local_address(&is_over)); });
    ASSERT_TRUE(j.world.run([&] { return is_over; }, 1'000 * stall_ns));
    EXPECT_TRUE(j.told.empty()) << j.told[0].text;
    EXPECT_GT(j.world.now_ns(), 5 * stall_ns);
    j.run_for(told_by_ns + 3 * stall_ns);
    j.expect_told_of(all_of(nodes));
  }
}

// ---- nodes that do not answer ----

// Whoever is not there is named, by nobody's loss; the others say who waits.
TEST(simulated_stalls, are_told_though_a_node_has_died) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    stalling_job j(stalling_job::model(5), seed, stalled_network);
    wait_in_a_circle(j);
    const auto dead = static_cast<net::node_id>(1 + j.world.random.below(4));
    // Before it is asked, and while it is.
    j.world.at(j.drawn(0, 2 * stall_ns), [&] { j.job->node(dead).crash(); });
    j.run_for(2 * told_by_ns);
    ASSERT_EQ(j.told.size(), 1U);
    std::set<net::node_id> living = all_of(5);
    if (j.told[0].says("no answer")) {
      EXPECT_TRUE(j.told[0].says("from node " + std::to_string(dead))) << j.told[0].text;
      living.erase(dead);
    }
    j.expect_told_of(living);
  }
}

// Where somebody watches who lives, whoever waits hears of the loss instead.
TEST(simulated_stalls, are_not_told_of_once_a_node_is_lost) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::job_model m = stalling_job::model(4);
    m.lost_after_ns = stall_ns / 2;
    stalling_job j(m, seed, stalled_network);
    wait_in_a_circle(j);
    const auto dead = static_cast<net::node_id>(1 + j.world.random.below(3));
    j.world.at(j.drawn(0, stall_ns / 4), [&] { j.job->node(dead).crash(); });
    j.run_for(3 * told_by_ns);
    EXPECT_TRUE(j.job->node(0).losses().contains(dead));
    EXPECT_TRUE(j.told.empty()) << j.told[0].text;
  }
}

struct cut_network {
  stalling_job& j;
  std::set<net::node_id> far{};

  void cut() {
    for (net::node_id n = 1; n < j.job->size(); ++n) {
      if (far.contains(n)) continue;
      for (const net::node_id f : far) j.world.cut(n, f);
    }
    for (const net::node_id f : far) j.world.cut(0, f);
  }
  void heal() {
    for (net::node_id n = 0; n < j.job->size(); ++n) {
      for (const net::node_id f : far) j.world.join(n, f);
    }
  }
};

TEST(simulated_stalls, are_told_of_all_when_a_cut_has_healed_in_time) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    stalling_job j(stalling_job::model(5), seed, stalled_network);
    wait_in_a_circle(j);
    cut_network c{j, {3, 4}};
    const std::int64_t at = j.drawn(stall_ns / 2, 2 * stall_ns);
    j.world.at(at, [&] { c.cut(); });
    j.world.at(at + j.drawn(stall_ns / 10, stall_ns * 8 / 10), [&] { c.heal(); });
    j.run_for(2 * told_by_ns);
    j.expect_told_of(all_of(5));
    EXPECT_FALSE(j.told[0].says("no answer")) << j.told[0].text;
  }
}

TEST(simulated_stalls, are_told_though_nodes_are_cut_off_for_good) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    stalling_job j(stalling_job::model(5), seed, stalled_network);
    wait_in_a_circle(j);
    cut_network c{j, {2, 4}};
    j.world.at(j.drawn(0, stall_ns / 2), [&] { c.cut(); });
    j.run_for(2 * told_by_ns);
    j.expect_told_of({0, 1, 3});
    EXPECT_TRUE(j.told[0].says("from node 2, node 4:")) << j.told[0].text;
    EXPECT_TRUE(j.told[0].says("nothing has moved for")) << j.told[0].text;
  }
}

// ---- nodes that come ----

TEST(simulated_stalls, are_told_of_nodes_that_came_meanwhile) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::job_model m = stalling_job::model(5);
    m.founders = 3;
    stalling_job j(m, seed, stalled_network);
    wait_in_a_circle(j);
    j.world.at(j.drawn(0, stall_ns + stall_ns / 8), [&] {
      j.job->come([&](net::node_id n) {
        j.job->node(n).waiting["a word for thread " + std::to_string(n)] = false;
      });
    });
    j.run_for(2 * told_by_ns);
    ASSERT_EQ(j.job->size(), 4U);
    j.expect_told_of(all_of(4));
  }
}

TEST(simulated_stalls, are_replayed_exactly_by_their_seed) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    const auto run = [&] {
      stalling_job j(stalling_job::model(5), seed, stalled_network);
      wait_in_a_circle(j);
      j.world.at(stall_ns, [&] { j.job->node(3).crash(); });
      j.run_for(told_by_ns);
      std::map<std::int64_t, std::string> all;
      for (const told_stall& t : j.told) all.emplace(t.at_ns, t.text);
      return std::pair(all, j.world.packets());
    };
    EXPECT_EQ(run(), run());
  }
}

}  // namespace
}  // namespace strata::test
