// SPDX-License-Identifier: Apache-2.0
// A node that ends with messages of others in it: who sends or waits hears which node is lost, and
// what a sender was told has been received. Nothing is lost in silence.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "program_job.hpp"
#include "strata/message.hpp"
#include "talking_job.hpp"

namespace strata::test {
namespace {

// Node 0 floods `target`, which answers; a third node waits for what nobody sends. Each of these
// threads ends with the loss of `victim`.
class doomed_flood {
 public:
  doomed_flood(std::uint64_t seed, const cables& networks, node_id nodes, node_id target,
               node_id victim)
      : p(seed,
          {.nodes = nodes,
           .links = networks,
           .lost_after_ns = 30 * program_job::ms,
           .breaks_off = true},
          program_job::disorderly),
        networks_(networks),
        nodes_(nodes),
        target_(target),
        victim_(victim) {
    networks.lay_in(p.world);
    EXPECT_TRUE(p.world.run([&] { return p.job->has_begun(); }));
  }

  // `happens` is told how many messages have been acknowledged so far.
  void run(const std::function<void(std::uint64_t)>& happens) {
    std::optional<endpoint_id> there, home;
    begin(target_, [&] {
      endpoint here;
      there = here.id();
      while (!home) p.pause(10'000);
      for (;; ++received) {
        EXPECT_EQ(here.receive_value<std::uint64_t>(any_endpoint_on(0), 1), received);
        here.send_value(*home, 2, received);
      }
    });
    begin(0, [&] {
      endpoint here;
      home = here.id();
      for (;; ++answered) EXPECT_EQ(here.receive_value<std::uint64_t>(any_endpoint, 2), answered);
    });
    begin(0, [&] {
      while (!there) p.pause(10'000);
      send(*there, happens);
    });
    for (node_id n = 1; n < nodes_; ++n) {
      if (n == target_ || n == victim_) continue;
      begin(n, [] {
        endpoint here;
        (void)here.receive_value<int>(any_endpoint_on(0));
      });
    }
    p.run();
    EXPECT_EQ(told_, begun_);
    EXPECT_GE(received, acknowledged);
    EXPECT_GE(received, answered);
  }

  // As a process that dies: the kernel ends its connections.
  void kill() {
    p.world.at(p.now_ns(), [this] {
      p.job->node(victim_).crash();
      for (node_id n = 0; n < nodes_; ++n) {
        if (n != victim_ && networks_(victim_, n)) p.job->tear(victim_, n);
      }
    });
  }

  program_job p;
  std::uint64_t acknowledged = 0, answered = 0, received = 0;

 private:
  // A thread that goes on until it hears of the loss.
  void begin(node_id n, std::function<void()> forever) {
    ++begun_;
    p.begin(n, [this, n, forever = std::move(forever)] {
      try {
        forever();
      } catch (const node_lost_error& e) {
        EXPECT_EQ(e.node(), victim_) << n << ": " << e.what();
        ++told_;
      }
    });
  }
  void send(endpoint_id there, const std::function<void(std::uint64_t)>& happens) {
    constexpr std::size_t ahead = 32;
    endpoint mine;
    std::array<std::uint64_t, ahead> numbers{};
    std::array<transfer, ahead> sends;
    for (std::uint64_t i = 0;; ++i) {
      transfer& next = sends[i % ahead];
      if (next.valid()) {
        next.wait();
        happens(++acknowledged);
      }
      numbers[i % ahead] = i;
      next = mine.start_synchronous_send(there, 1, bytes_of(numbers[i % ahead]));
    }
  }

  const cables networks_;
  const node_id nodes_, target_, victim_;
  unsigned begun_ = 0, told_ = 0;
};

TEST(simulated_gateways, one_that_dies_takes_no_message_with_it_in_silence) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    cables chain;
    for (node_id n = 1; n < 4; ++n) chain.lay(n - 1, n, 5'000);
    cables with_another_way = chain;
    with_another_way.lay(0, 4, 200'000);
    with_another_way.lay(4, 3, 200'000);
    for (const auto& [networks, nodes] : {std::pair(chain, 4), std::pair(with_another_way, 5)}) {
      doomed_flood f(seed, networks, static_cast<node_id>(nodes), 3, 1);
      const std::uint64_t dies_at = 1 + f.p.below(400);
      EXPECT_EQ(f.p.job->node(0).way_to(3).next, 1);
      f.run([&](std::uint64_t acknowledged) {
        if (acknowledged == dies_at) f.kill();
      });
      EXPECT_GE(f.acknowledged, dies_at);
      EXPECT_GT(f.p.job->node(1).forwarded(), 0U);
    }
  }
}

// The connection of 0 and 2 ends; what they say goes around by 1, and then 1 ends, too.
TEST(simulated_gateways, nor_does_one_on_a_detour) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    cables c = triangle();
    c.lay(0, 3, 200'000);
    c.lay(3, 2, 200'000);
    doomed_flood f(seed, c, 4, 2, 1);
    const std::uint64_t tears_at = 1 + f.p.below(100);
    bool goes_around = false;
    std::uint64_t dies_at = UINT64_MAX;
    f.run([&](std::uint64_t acknowledged) {
      if (acknowledged == tears_at) f.p.world.at(f.p.now_ns(), [&f] { f.p.job->tear(0, 2); });
      if (!goes_around && f.p.job->node(0).way_to(2).next == 1) {
        goes_around = true;
        dies_at = acknowledged + 1 + f.p.below(300);
      }
      if (acknowledged == dies_at) f.kill();
    });
    EXPECT_TRUE(goes_around);
    EXPECT_GE(f.acknowledged, dies_at);
    EXPECT_GT(f.p.job->node(1).forwarded(), 0U);
  }
}

// The next one in the ring of heartbeats notices, and the others believe it.
TEST(simulated_gateways, any_of_three_that_stops_is_the_one_that_is_lost) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (node_id stopped = 0; stopped < 3; ++stopped) {
      sim::world world({.jitter_ns = 100'000, .loss = 0.05}, seed);
      sim::job job(world, {.nodes = 3, .lost_after_ns = 1'000'000'000});
      const std::int64_t stops_at = 2'000'000'000;
      world.at(stops_at, [&] { job.node(stopped).crash(); });
      const auto next = static_cast<node_id>((stopped + 1) % 3);
      const auto other = static_cast<node_id>((stopped + 2) % 3);
      ASSERT_TRUE(world.run([&] { return !job.node(next).losses().empty(); }, 2 * stops_at));
      EXPECT_TRUE(job.node(other).losses().empty()) << "it is told";
      world.run([] { return false; }, 10'000'000'000);
      const std::map<node_id, std::string> lost{{stopped, "silent for 1000 ms"}};
      EXPECT_EQ(job.node(next).losses(), lost);
      EXPECT_EQ(job.node(other).losses(), lost);
    }
  }
}

}  // namespace
}  // namespace strata::test
