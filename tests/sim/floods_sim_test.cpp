// SPDX-License-Identifier: Apache-2.0
// Nodes that send faster than others receive, through credits that are soon used up: links, frames
// and credits as they are in a real job. All that was sent arrives, once and in order, and what
// waits is bounded, also at nodes that only pass it on.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ask_fib.hpp"
#include "sim/simulated_job.hpp"
#include "strata/fiber.hpp"
#include "talking_job.hpp"
#include "tests/common/sampled.hpp"

namespace strata::test {
namespace {

constexpr std::size_t flood_credits = std::size_t{8} << 10;
// Of what a program may queue for one neighbour before it has to wait (links.cpp).
constexpr std::size_t flood_queue_bytes = std::size_t{1} << 20;

std::size_t small_or_large(prng& random) {
  return 4 + random.below(random.below(2) ? 300 : 16'000);
}
std::size_t eight_kib(prng&) { return std::size_t{8} << 10; }

struct flood_totals {
  std::int64_t time_ns;
  std::uint64_t packets, happenings;
  friend bool operator==(const flood_totals&, const flood_totals&) = default;
};

// Nodes with a program each that sends all it has as fast as it may: see mailer::wait_for_room().
class flood {
 public:
  using size_of_next = std::size_t (*)(prng&);

  flood(const sim::job_model& m, const sim::network_model& network, std::uint64_t seed,
        size_of_next size = &small_or_large)
      : world(network, seed), job(world, m), random_(seed), size_(size) {
    for (node_id n = 0; n < m.nodes; ++n) listen(n);
  }

  static sim::job_model model(node_id nodes) {
    return {
        .nodes = nodes, .receive_ns = 3'000, .credits_bytes = flood_credits, .staged_ns = 2'000};
  }

  void send(node_id from, node_id to, std::uint32_t messages) {
    flows_.push_back({from, to, messages});
    if (std::exchange(speaks_[from], true)) return;
    world.at(world.now_ns(), [this, from] { speak(from); });
  }

  // All has arrived that nobody is lost for.
  void run(std::int64_t limit_ns = 60'000'000'000) {
    look();
    EXPECT_TRUE(world.run([this] { return is_over(); }, limit_ns)) << "something is lost";
    if (!is_over()) tell_waits();
    for (node_id n = 0; n < job.size(); ++n) {
      if (job.node(n).has_crashed()) continue;
      EXPECT_LE(job.node(n).connections().most_under_way(), flood_credits + largest_ + 100) << n;
      most_under_way = std::max(most_under_way, job.node(n).connections().most_under_way());
    }
    try {
      if (const std::exception_ptr error = job.failure()) std::rethrow_exception(error);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
  [[nodiscard]] flood_totals counted() const {
    return {world.now_ns(), world.packets(), world.happenings()};
  }

  sim::world world;
  sim::job job;
  // In all of the run, at any node.
  std::size_t most_queued = 0, most_under_way = 0;
  // A program had to wait though its own node's queue was short.
  bool was_held = false;

 private:
  struct flow {
    node_id from, to;
    std::uint32_t messages;
    std::uint32_t sent = 0, received = 0;
  };
  [[nodiscard]] bool is_dead(const flow& f) {
    return job.node(f.from).has_crashed() || job.node(f.to).has_crashed();
  }
  bool is_over() {
    return std::all_of(flows_.begin(), flows_.end(),
                       [this](const flow& f) { return f.received == f.messages || is_dead(f); });
  }
  void tell_waits() {
    for (const flow& f : flows_) {
      if (f.received != f.messages)
        ADD_FAILURE() << f.from << " to " << f.to << ": " << f.received << " of " << f.sent;
    }
  }

  void listen(node_id n) {
    job.node(n).hears = [this, n](node_id from, kind k, std::span<const std::byte> payload) {
      if (k != numbered) return false;
      std::uint32_t number = 0;
      std::memcpy(&number, payload.data(), sizeof number);
      const auto f = std::find_if(flows_.begin(), flows_.end(),
                                  [&](const flow& one) { return one.from == from && one.to == n; });
      EXPECT_TRUE(f != flows_.end());
      EXPECT_EQ(number, f->received) << "from " << from << " to " << n;
      f->received = number + 1;
      EXPECT_EQ(payload.back(), last_byte_of(number, payload.size()));
      return true;
    };
  }
  static std::byte last_byte_of(std::uint32_t number, std::size_t size) {
    return size == sizeof number ? static_cast<std::byte>(number >> 24)
                                 : static_cast<std::byte>(number + size);
  }

  void speak(node_id n) {
    sim::simulated_node& node = job.node(n);
    if (node.has_crashed()) return;
    bool has_more = false;
    for (flow& f : flows_) {
      if (f.from != n || f.sent == f.messages || node.losses().contains(f.to)) continue;
      has_more = true;
      if (node.is_congested(f.to)) {
        const node_id next = node.way_to(f.to).next;
        was_held |= node.queued_bytes(next) <= flood_queue_bytes;
        continue;
      }
      const std::uint32_t number = f.sent++;
      std::vector<std::byte> payload(size_(random_));
      largest_ = std::max(largest_, payload.size());
      std::memcpy(payload.data(), &number, sizeof number);
      payload.back() = last_byte_of(number, payload.size());
      node.post(f.to, numbered, payload, {});
    }
    if (!has_more) return;
    // Often none: what follows at once may be staged.
    const auto pause = static_cast<std::int64_t>(random_.below(2) * random_.below(6'000));
    world.at(world.now_ns() + std::max<std::int64_t>(pause, has_sent_at(n)),
             [this, n] { speak(n); });
  }
  // Now and then time has to go on.
  std::int64_t has_sent_at(node_id n) { return ++turns_[n] % 4 == 0 ? 1'000 : 0; }

  void look() {
    for (node_id n = 0; n < job.size(); ++n) {
      for (node_id to = 0; to < job.size(); ++to) {
        if (n != to) most_queued = std::max(most_queued, job.node(n).queued_bytes(to));
      }
    }
    if (!is_over()) world.at(world.now_ns() + 20'000, [this] { look(); });
  }

  prng random_;
  const size_of_next size_;
  std::deque<flow> flows_;
  std::map<node_id, bool> speaks_;
  std::map<node_id, unsigned> turns_;
  std::size_t largest_ = 0;
};

constexpr sim::network_model flooded_network{
    .jitter_ns = 30'000, .loss = 0.05, .duplication = 0.05};

TEST(simulated_floods, between_all_pairs_end) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const node_id nodes : {2, 5}) {
      flood f(flood::model(nodes), flooded_network, seed);
      for (node_id a = 0; a < nodes; ++a) {
        for (node_id b = 0; b < nodes; ++b) {
          if (a != b) f.send(a, b, nodes == 2 ? 600 : 150);
        }
      }
      f.run();
      EXPECT_GE(f.most_under_way, flood_credits) << "no credits were used up";
      EXPECT_GT(f.most_queued, 0U) << "nobody was refused";
      EXPECT_LE(f.most_queued, flood_queue_bytes + 20'000);
    }
  }
}

// Each sends half round a circle in which only neighbours share a network: every node passes on as
// much as it sends, and all of them are full.
sim::job_model circle_of_gateways(node_id nodes) {
  sim::job_model m = flood::model(nodes);
  m.links = [nodes](node_id a, node_id b) {
    const auto apart = static_cast<unsigned>(a > b ? a - b : b - a);
    return apart == 1 || apart == nodes - 1U ? std::optional<cluster::link>(1) : std::nullopt;
  };
  return m;
}

TEST(simulated_floods, round_a_circle_of_nodes_that_pass_on_end) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const node_id nodes : {3, 6}) {
      for (const sim::network_model& network : {sim::network_model{}, flooded_network}) {
        flood f(circle_of_gateways(nodes), network, seed, &eight_kib);
        for (node_id n = 0; n < nodes; ++n)
          f.send(n, static_cast<node_id>((n + nodes / 2) % nodes), 150);
        f.run();
        EXPECT_GE(f.most_under_way, flood_credits);
        if (nodes == 3) continue;
        EXPECT_GT(f.job.node(0).forwarded(), 0U);
      }
    }
  }
}

// 0 - 1 - 2, of which the second network is slow. What would wait at the gateway waits at its
// source, which hears of it.
TEST(simulated_floods, are_held_at_their_source_for_a_gateway_that_is_full) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::job_model m = flood::model(3);
    m.links = [](node_id a, node_id b) {
      return a + 1 == b || b + 1 == a ? std::optional<cluster::link>(1) : std::nullopt;
    };
    flood f(m, {.jitter_ns = 5'000}, seed, &eight_kib);
    f.world.lay(1, 2, {.latency_ns = 50'000, .bytes_per_ns = 1.25});
    constexpr std::uint32_t messages = 600;  // 4.7 MiB
    f.send(0, 2, messages);
    f.run();
    EXPECT_TRUE(f.was_held);
    EXPECT_GT(f.most_queued, flood_queue_bytes) << "the gateway was never full";
    // And what its source had queued when the word came.
    EXPECT_LE(f.most_queued, 2 * flood_queue_bytes + (std::size_t{64} << 10));
    EXPECT_GE(f.job.node(1).forwarded(), messages);
  }
}

// Of a node that crashes all hear once; what waited for it is gone, and between the others nothing
// is missing or comes twice.
TEST(simulated_floods, end_for_all_others_when_a_node_crashes) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 5;
    sim::job_model m = flood::model(nodes);
    m.lost_after_ns = 500'000'000;
    flood f(m, flooded_network, seed);
    for (node_id a = 0; a < nodes; ++a) {
      for (node_id b = 0; b < nodes; ++b) {
        if (a != b) f.send(a, b, 300);
      }
    }
    const auto victim = static_cast<node_id>(1 + f.world.random.below(nodes - 1));
    std::size_t queued = 0;
    f.world.at(5'000'000, [&] {
      for (node_id n = 0; n < nodes; ++n) {
        if (n != victim) queued += f.job.node(n).queued_bytes(victim);
      }
      f.job.node(victim).crash();
    });
    f.run();
    EXPECT_GT(queued, 0U) << "nothing waited for it";
    EXPECT_TRUE(f.world.run(
        [&] {
          for (node_id n = 0; n < nodes; ++n) {
            if (n != victim && f.job.node(n).losses().empty()) return false;
          }
          return true;
        },
        f.world.now_ns() + 5'000'000'000));
    f.world.run([] { return false; }, f.world.now_ns() + 2'000'000'000);
    for (node_id n = 0; n < nodes; ++n) {
      if (n == victim) continue;
      EXPECT_EQ(f.job.node(n).losses().size(), 1U) << n;
      EXPECT_TRUE(f.job.node(n).losses().contains(victim)) << n;
      EXPECT_EQ(f.job.node(n).queued_bytes(victim), 0U) << n;
      EXPECT_FALSE(f.job.node(n).is_congested(victim)) << n;
    }
  }
}

// With a queue that waits for room there, and more under way. Where there is a spare connection it
// goes on by that, else around.
TEST(simulated_floods, go_on_when_their_connection_ends) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const bool spares : {false, true}) {
      sim::job_model m = flood::model(3);
      m.links = triangle();
      m.spares = spares;
      flood f(m, misbehaving, seed);
      for (node_id a = 0; a < 3; ++a) {
        for (node_id b = 0; b < 3; ++b) {
          if (a != b) f.send(a, b, 200);
        }
      }
      std::size_t queued = 0;
      f.world.at(2'000'000, [&] {
        queued = f.job.node(1).queued_bytes(2) + f.job.node(2).queued_bytes(1);
        f.job.tear(1, 2);
      });
      f.run();
      EXPECT_GT(queued, 0U) << "nothing waited";
      EXPECT_EQ(f.job.node(1).way_to(2).hops, spares ? 1 : 2);
      for (node_id n = 0; n < 3; ++n) EXPECT_TRUE(f.job.node(n).losses().empty());
    }
  }
}

// ---- what handlers say because of what has come ----

struct signals_awaited : threaded {
  unsigned count;
  slot_ptr* where;
  bool* all_there;
  void start() { *where = to_sptr(ALL); }
  void all() {
    *all_there = true;
    terminate();
  }
  fiber<&signals_awaited::all> ALL{this, count};
};

// 0 puts to 1, whose handler signals slots of 2 for that, over a network that is slow: nobody sends
// 2 anything but that handler, who must not wait. So it is 0 who does.
TEST(simulated_floods, of_what_handlers_say_are_held_at_who_makes_them_say_it) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr unsigned puts = sampled(200'000U, 100'000U);
    sim::world world({.jitter_ns = 5'000}, seed);
    sim::job job(world,
                 {.nodes = 3, .message_ns = 0, .credits_bytes = flood_credits, .staged_ns = 2'000});
    world.lay(1, 2, {.latency_ns = 5'000, .bytes_per_ns = 0.01});
    slot_ptr signalled;
    bool all_there = false;
    job.node(2).as_worker([&] {
      invoke<signals_awaited>(2, puts, local_address(&signalled), local_address(&all_there));
    });
    world.run([&] { return signalled != slot_ptr(); });
    std::uint64_t word = 0;
    unsigned sent = 0;
    std::size_t most_queued = 0;
    bool was_held = false;
    std::function<void()> put_some = [&] {
      for (unsigned i = 0; i < 20 && sent < puts; ++i) {
        if (job.node(0).is_congested(1)) break;
        if (job.node(0).is_congested(2)) {
          was_held = true;
          break;
        }
        ++sent;
        job.node(0).as_worker(
            [&] { put_sync<std::uint64_t>(sent, global_ptr<std::uint64_t>(1, &word), signalled); });
      }
      most_queued = std::max(most_queued, job.node(1).queued_bytes(2));
      if (sent < puts) world.at(world.now_ns() + 2'000, put_some);
    };
    put_some();
    EXPECT_TRUE(world.run([&] { return all_there; }, 600'000'000'000)) << "something is lost";
    EXPECT_EQ(sent, puts);
    EXPECT_TRUE(was_held);
    EXPECT_GT(most_queued, flood_queue_bytes) << "nothing waited";
    // And what 0 had queued when it heard of it.
    EXPECT_LE(most_queued, 2 * flood_queue_bytes + (std::size_t{64} << 10));
    EXPECT_FALSE(job.node(0).is_congested(2));
    EXPECT_EQ(job.failure(), nullptr);
  }
}

TEST(simulated_floods, are_replayed_exactly_by_their_seed) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    const auto run = [&] {
      flood f(circle_of_gateways(5), flooded_network, seed);
      for (node_id n = 0; n < 5; ++n) f.send(n, static_cast<node_id>((n + 2) % 5), 100);
      f.run();
      return f.counted();
    };
    EXPECT_EQ(run(), run());
  }
}

// Every message of every protocol may be refused.
TEST(simulated_floods, of_small_credits_leave_all_protocols_right) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::world world(flooded_network, seed);
    sim::job_model m = circle_of_gateways(5);
    m.credits_bytes = 100;
    m.cost = two_microseconds;
    sim::job job(world, m);
    answer a;
    job.node(0).as_worker([&] { token<ask_fib>(15, &a); });
    bool quiet = false;
    job.node(0).protocols.quiet.detect([&] { quiet = true; });
    EXPECT_TRUE(world.run([&] { return quiet; })) << "nothing happens any more";
    EXPECT_EQ(job.failure(), nullptr);
    EXPECT_EQ(a.value, 610);
  }
}

}  // namespace
}  // namespace strata::test
