// SPDX-License-Identifier: Apache-2.0
// Threads that send to so many endpoints that all their room together is far more than a network
// carries: what is queued is bounded, at their node and at a gateway, since they wait; and all of
// it arrives in order.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "program_job.hpp"
#include "strata/message.hpp"

namespace strata::test {
namespace {

using net::node_id;

class crowded_network {
 public:
  // As links.hpp has it.
  static constexpr std::size_t bytes_queued_max = std::size_t{1} << 20;

  crowded_network(std::uint64_t seed, const sim::job_model& model)
      : p(seed, model, {.jitter_ns = 5'000}), last_(static_cast<node_id>(model.nodes - 1)) {
    p.world.lay(static_cast<node_id>(last_ - 1), last_,
                {.latency_ns = 50'000, .bytes_per_ns = 0.2});
    p.begin(last_, [this] { receive_all(); });
    for (unsigned t = 0; t < threads; ++t) p.begin(0, [this, t] { send_all(t); });
    look();
  }
  void run() {
    p.run([] { return true; }, 200'000 * program_job::ms);
    EXPECT_GT(most_queued, bytes_queued_max / 2) << "there was room for all";
    EXPECT_FALSE(p.job->node(0).is_congested(last_));
  }

  program_job p;
  std::size_t most_queued = 0;  // at any node

 private:
  static constexpr unsigned threads = 400, targets_each = 5, messages_each = 8;
  static constexpr std::size_t message_bytes = 1024;

  void send_all(unsigned thread) {
    while (targets_.size() != threads * targets_each) p.pause(program_job::ms);
    endpoint mine;
    std::array<std::byte, message_bytes> bytes{};
    for (unsigned number = 0; number < messages_each; ++number) {
      std::memcpy(bytes.data(), &number, sizeof number);
      for (unsigned i = 0; i < targets_each; ++i)
        mine.send(targets_[thread * targets_each + i], 0, bytes);
    }
    ++ended_;
    while (!over_) p.pause(20 * program_job::ms);
  }
  void receive_all() {
    std::vector<endpoint> all(threads * targets_each);
    for (const endpoint& one : all) targets_.push_back(one.id());
    std::array<std::byte, message_bytes> bytes{};
    for (endpoint& one : all) {
      for (unsigned number = 0; number < messages_each; ++number) {
        one.receive(bytes);
        EXPECT_EQ(std::memcmp(bytes.data(), &number, sizeof number), 0);
      }
    }
    EXPECT_EQ(ended_, threads);
    over_ = true;
  }
  void look() {
    for (node_id n = 0; n < last_; ++n)
      most_queued = std::max(most_queued, p.job->node(n).queued_bytes(n + 1));
    if (!over_) p.world.at(p.now_ns() + 20'000, [this] { look(); });
  }

  const node_id last_;
  std::vector<endpoint_id> targets_;
  unsigned ended_ = 0;
  bool over_ = false;
};

sim::job_model little_room(node_id nodes) {
  return {.nodes = nodes, .receive_ns = 3'000, .credits_bytes = 8 << 10, .staged_ns = 2'000};
}

TEST(simulated_crowding, waits_for_the_queue_to_a_neighbour) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    crowded_network c(seed, little_room(2));
    c.run();
    EXPECT_LE(c.most_queued, crowded_network::bytes_queued_max + (std::size_t{64} << 10));
  }
}

TEST(simulated_crowding, waits_for_the_queue_at_a_gateway) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::job_model m = little_room(3);
    m.links = [](node_id a, node_id b) {
      return a + 1 == b || b + 1 == a ? std::optional<cluster::link>(1) : std::nullopt;
    };
    crowded_network c(seed, m);
    c.run();
    EXPECT_GT(c.most_queued, crowded_network::bytes_queued_max) << "the gateway was never full";
    // And what its source had queued when the word came.
    EXPECT_LE(c.most_queued, 2 * crowded_network::bytes_queued_max + (std::size_t{64} << 10));
  }
}

TEST(simulated_crowding, is_replayed_exactly_by_its_seed) {
  const auto outcome = [] {
    crowded_network c(7, little_room(2));
    c.run();
    return c.p.outcome();
  };
  EXPECT_EQ(outcome(), outcome());
}

}  // namespace
}  // namespace strata::test
