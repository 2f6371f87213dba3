// SPDX-License-Identifier: Apache-2.0
// What nodes say of themselves, and to each other about the job, where there is no memory for
// saying it the first time: others wait for it, so it is said in the end.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "../common/refused_new.hpp"
#include "sim/simulated_job.hpp"
#include "strata/fiber.hpp"
#include "support.hpp"
#include "tests/common/fib_tokens.hpp"

namespace strata::test {
namespace {

using cluster::kind;
using net::node_id;

struct adds_up : threaded {
  int n;
  long* sum;
  long value = 0;
  void start() { token<fib_tokens>(n, to_global(&value), to_sptr(DONE)); }
  void done() {
    *sum += value;
    terminate();
  }
  fiber<&adds_up::done> DONE{this, 1};
};

// Nodes of which each has no memory for the first word of each of these kinds, to each other one.
class without_first_words {
 public:
  without_first_words(sim::job& job, std::initializer_list<kind> kinds) : job_(job), kinds_(kinds) {
    for (node_id n = 0; n < job.size(); ++n) begin(n);
    job.when_made = [this](node_id n) { begin(n); };
  }
  // All kinds have been.
  void expect_refused() const {
    for (const kind k : kinds_)
      EXPECT_TRUE(refused_.contains(k)) << "nobody has said kind " << static_cast<unsigned>(k);
  }

 private:
  void begin(node_id self) {
    job_.node(self).says = [this, said = std::set<std::pair<node_id, kind>>()](node_id to,
                                                                               kind k) mutable {
      if (!kinds_.contains(k) || !said.emplace(to, k).second) return;
      refused_.insert(k);
      throw std::bad_alloc();
    };
  }

  sim::job& job_;
  const std::set<kind> kinds_;
  std::set<kind> refused_;
};

TEST(simulated_without_memory, nodes_that_come_and_go_say_so_in_the_end) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id leaver = 1;
    sim::world world({.jitter_ns = 20'000}, seed);
    sim::job job(world, {.nodes = 5, .founders = 3, .cost = two_microseconds});
    const without_first_words first(
        job, {kind::steal, kind::nothing, kind::probe, kind::passive, kind::arrive, kind::known,
              kind::leaving, kind::farewell, kind::kept_back, kind::left, kind::parted});
    long sum = 0;
    bool has_come = false, has_left = false, is_quiet = false;
    job.node(0).as_worker([&] { token<adds_up>(18, &sum); });
    job.come([&](node_id) {
      has_come = true;
      job.leave(leaver, [&] { has_left = true; });
    });
    job.node(0).protocols.quiet.detect([&] { is_quiet = true; });
    EXPECT_TRUE(world.run([&] { return is_quiet && has_come && has_left; },
                          world.now_ns() + 10'000'000'000))
        << "nothing happens any more";
    EXPECT_EQ(job.failure(), nullptr);
    EXPECT_EQ(sum, 2584);
    first.expect_refused();
  }
}

// There is no memory for finding out next to whom it comes.
TEST(simulated_without_memory, who_comes_is_known_in_the_end) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::world world({.jitter_ns = 20'000}, seed);
    sim::job job(world, {.nodes = 4, .founders = 3});
    std::optional<refused_new> once;
    job.node(1).hears = [&](node_id, kind k, std::span<const std::byte>) {
      if (k == kind::arrive) once.emplace(1, SIZE_MAX, 1);
      return false;
    };
    bool has_come = false;
    job.come([&](node_id) { has_come = true; });
    EXPECT_TRUE(world.run([&] { return has_come; }, world.now_ns() + 1'000'000'000));
    EXPECT_EQ(refused_new::refused(), 1U);
    EXPECT_EQ(job.failure(), nullptr);
  }
}

struct fails_at_once : threaded {
  sim::job* job;
  void start() {
    job->node(strata::node_id()).fail(std::make_exception_ptr(std::domain_error("no such place")));
    terminate();
  }
};

// All hear of it, one that comes just then as well, and of its end.
TEST(simulated_without_memory, failures_are_told_in_the_end) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::world world({.jitter_ns = 20'000}, seed);
    sim::job job(world, {.nodes = 4, .founders = 3});
    const without_first_words first(job, {kind::failed, kind::settled, kind::probe, kind::passive});
    bool is_settled = false, has_come = false;
    job.when_settled = [&] { is_settled = true; };
    job.come([&](node_id) { has_come = true; });
    job.node(0).as_worker([&] { invoke<fails_at_once>(1, local_address(&job)); });
    const auto is_over = [&] { return is_settled && has_come; };
    EXPECT_TRUE(world.run(is_over, world.now_ns() + 10'000'000'000)) << "it does not end";
    std::uint64_t sent = 0, received = 0;
    const auto is_even = [&] {
      sent = received = 0;
      for (node_id n = 0; n < job.size(); ++n) {
        sent += job.node(n).protocols.counts.sent;
        received += job.node(n).protocols.counts.received;
      }
      return sent == received;
    };
    EXPECT_TRUE(world.run(is_even, world.now_ns() + 1'000'000'000))
        << sent << " sent, " << received << " received";
    first.expect_refused();
  }
}

TEST(simulated_without_memory, losses_are_told_in_the_end) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id victim = 2, nodes = 5;
    constexpr std::int64_t lost_after_ns = 30'000'000;
    sim::world world({.jitter_ns = 20'000}, seed);
    sim::job job(world, {.nodes = nodes, .lost_after_ns = lost_after_ns});
    const without_first_words first(job, {kind::heartbeat, kind::lost});
    world.at(lost_after_ns, [&] { job.node(victim).crash(); });
    const auto all_know = [&] {
      for (node_id n = 0; n < nodes; ++n)
        if (n != victim && !job.node(n).losses().contains(victim)) return false;
      return true;
    };
    EXPECT_TRUE(world.run(all_know, 10 * lost_after_ns));
    for (node_id n = 0; n < nodes; ++n)
      EXPECT_EQ(job.node(n).losses().size(), n == victim ? 0U : 1U) << "node " << n;
    first.expect_refused();
  }
}

TEST(simulated_without_memory, stalls_are_found_in_the_end) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::world world({.jitter_ns = 20'000}, seed);
    sim::job job(world, {.nodes = 3, .stalls_after_ns = 30'000'000});
    const without_first_words first(job, {kind::who_waits, kind::waits_here});
    std::string report;
    job.when_stalled = [&](const std::string& text) { report += text; };
    job.node(0).waiting["what never comes"] = false;
    EXPECT_TRUE(world.run([&] { return !report.empty(); }, 1'000'000'000));
    EXPECT_NE(report.find("what never comes"), std::string::npos) << report;
    first.expect_refused();
  }
}

// Of who answered, or of what it said, node 0 could keep nothing at first.
TEST(simulated_without_memory, answers_about_stalls_are_no_failures) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::world world({.jitter_ns = 20'000}, seed);
    sim::job job(world, {.nodes = 3, .stalls_after_ns = 30'000'000});
    std::string report;
    job.when_stalled = [&](const std::string& text) { report += text; };
    const std::string what(100, 'x');
    job.node(0).waiting["what never comes"] = false;
    job.node(1).waiting[what] = false;
    std::optional<refused_new> once;
    job.node(0).hears = [&](node_id, kind k, std::span<const std::byte> payload) {
      if (k == kind::waits_here && payload.size() > what.size() && !once)
        once.emplace(what.size(), SIZE_MAX, 1);
      return false;
    };
    EXPECT_TRUE(world.run([&] { return !report.empty(); }, 1'000'000'000));
    EXPECT_EQ(refused_new::refused(), 1U);
    EXPECT_EQ(job.failure(), nullptr);
    EXPECT_NE(report.find(what), std::string::npos) << report;
  }
}

}  // namespace
}  // namespace strata::test
