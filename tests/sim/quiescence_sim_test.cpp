// SPDX-License-Identifier: Apache-2.0
// What it takes to see that nothing moves any more: how many waves, how many messages, and how many
// of them one after the other.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ask_fib.hpp"
#include "sim/simulated_job.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

// Of the tree that waves go down: the way from node 0 to the farthest node.
std::uint64_t steps_down(net::node_id nodes) {
  return static_cast<std::uint64_t>(std::bit_width(unsigned{nodes})) - 1;
}

class watched_waves {
 public:
  explicit watched_waves(net::node_id nodes) : world_({}, nodes), chain_(nodes) {
    sim::job_model m;
    m.nodes = nodes;
    m.cost = [this](const detail::task&) {
      something_moves();
      return 2'000;
    };
    job_.emplace(world_, m);
    for (net::node_id n = 0; n < nodes; ++n) {
      job_->node(n).hears = [this, n](net::node_id from, cluster::kind k,
                                      std::span<const std::byte>) {
        if (k == cluster::kind::probe || k == cluster::kind::passive) {
          ++messages_;
          chain_[n] = std::max(chain_[n], chain_[from] + 1);
        } else if (cluster::carries_work(k)) {
          something_moves();
        }
        return false;
      };
    }
  }

  void detect() {
    bool quiet = false;
    job_->node(0).protocols.quiet.detect([&] { quiet = true; });
    ASSERT_TRUE(world_.run([&] { return quiet; }));
  }
  void compute_and_detect() {
    answer a;
    job_->node(0).as_worker([&] { token<ask_fib>(12, &a); });
    detect();
    EXPECT_EQ(a.value, 144);
  }

  [[nodiscard]] std::uint32_t waves() { return job_->node(0).protocols.quiet.waves(); }
  // Since something moved last.
  [[nodiscard]] std::uint32_t waves_begun_since() { return waves() - waves_then_; }
  [[nodiscard]] std::uint64_t longest_chain_since() const {
    return *std::max_element(chain_.begin(), chain_.end());
  }
  [[nodiscard]] std::uint64_t messages() const { return messages_; }

 private:
  void something_moves() {
    waves_then_ = waves();
    std::fill(chain_.begin(), chain_.end(), 0);
  }

  sim::world world_;
  std::vector<std::uint64_t> chain_;  // by node: of messages that each caused the next one
  std::uint64_t messages_ = 0;
  std::uint32_t waves_then_ = 0;
  std::optional<sim::job> job_;
};

constexpr net::node_id sizes_of_jobs[] = {2, 3, 10, 100, 1000};

TEST(simulated_quiescence, of_an_idle_job_takes_two_waves) {
  for (const net::node_id nodes : sizes_of_jobs) {
    SCOPED_TRACE(nodes);
    watched_waves w(nodes);
    w.detect();
    EXPECT_EQ(w.waves(), 2U);
    EXPECT_EQ(w.messages(), 2U * 2U * (nodes - 1U));
    EXPECT_EQ(w.longest_chain_since(), 2 * 2 * steps_down(nodes));
  }
}

// The wave that is under way when the last work is done saw some of it, perhaps; the next one sees
// all of it, and the one after that the same.
TEST(simulated_quiescence, takes_at_most_two_waves_more_when_nothing_moves) {
  for (const net::node_id nodes : sizes_of_jobs) {
    SCOPED_TRACE(nodes);
    watched_waves w(nodes);
    w.compute_and_detect();
    EXPECT_GE(w.waves_begun_since(), 1U);
    EXPECT_LE(w.waves_begun_since(), 2U);
    EXPECT_LE(w.longest_chain_since(), 3 * 2 * steps_down(nodes));
  }
}

}  // namespace
}  // namespace strata::test
