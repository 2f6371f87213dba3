// SPDX-License-Identifier: Apache-2.0
// Computations that fail on simulated nodes, each followed by one that must not.
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/prng.hpp"
#include "sim/simulated_job.hpp"
#include "strata/fiber.hpp"
#include "support.hpp"
#include "tests/common/fib_tokens.hpp"

namespace strata::test {
namespace {

struct failing : threaded {
  sim::job* job;
  void start() {
    job->node(strata::node_id()).fail(std::make_exception_ptr(std::domain_error("no such place")));
    terminate();
  }
};

struct fib_of : threaded {
  int n;
  long* where;
  long value = 0;
  void start() { token<fib_tokens>(n, to_global(&value), to_sptr(DONE)); }
  void done() {
    *where = value;
    terminate();
  }
  fiber<&fib_of::done> DONE{this, 1};
};

// Computations that fail on so many nodes and ones that do not, in turns: each begins as soon as
// the one before has ended.
class turns {
 public:
  turns(std::uint64_t seed, const sim::network_model& network, const sim::job_model& model,
        net::node_id culprits)
      : world_(network, seed), job_(world_, model), culprits_(culprits) {
    job_.when_settled = [this] { begin_good_one(); };
  }

  [[nodiscard]] bool comes_true(const bool& what) {
    return world_.run([&] { return what; }, world_.now_ns() + 10'000'000'000);
  }
  [[nodiscard]] sim::simulated_node& node(net::node_id n) { return job_.node(n); }
  // In each round, as soon as that node has been told to forget the failure.
  void fail_once_more_on(net::node_id n) {
    sim::simulated_node& node = job_.node(n);
    node.hears = [this, &node](net::node_id, cluster::kind k, std::span<const std::byte>) {
      if (k == cluster::kind::settled && std::exchange(fails_once_more_, false)) {
        world_.at(world_.now_ns(), [&node] {
          node.fail(std::make_exception_ptr(std::domain_error("nor is there that one")));
        });
      }
      return false;
    };
  }

  void run() {
    for (int round = 0; round < 8; ++round) {
      begin_bad_one();
      ASSERT_TRUE(world_.run([&] { return answer_ != 0; }, world_.now_ns() + 10'000'000'000))
          << "round " << round << " does not end";
      EXPECT_EQ(answer_, 233);
      EXPECT_NE(job_.failure(), nullptr);
    }
  }

 private:
  void begin_bad_one() {
    answer_ = 0;
    fails_once_more_ = true;
    job_.node(0).as_worker([&] {
      for (net::node_id i = 1; i <= culprits_; ++i)
        invoke<failing>(static_cast<node_id_t>(job_.size() - i), local_address(&job_));
      token<fib_of>(16, &given_up_);
    });
  }
  void begin_good_one() {
    for (net::node_id n = 0; n < job_.size(); ++n) EXPECT_TRUE(job_.node(n).is_still());
    job_.node(0).as_worker([&] { token<fib_of>(13, &answer_); });
  }

  sim::world world_;
  sim::job job_;
  const net::node_id culprits_;
  bool fails_once_more_ = true;
  long answer_ = 0, given_up_ = 0;
};

sim::job_model of_nodes(net::node_id n) { return {.nodes = n, .cost = two_microseconds}; }

// What one node says of the failure may come to another one long after what both say to node 0.
TEST(simulated_failures, are_forgotten_by_all) {
  const sim::network_model uneven{.jitter_ns = 10'000, .loss = 0.2};
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    turns(seed, uneven, of_nodes(3), 1).run();
    turns(seed, uneven, of_nodes(7), 1).run();
  }
}

TEST(simulated_failures, of_several_nodes_at_once_are_one) {
  const sim::network_model bad{.jitter_ns = 30'000, .loss = 0.05, .duplication = 0.05};
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    turns(seed, bad, of_nodes(5), 5).run();
  }
}

// Who waits on another node is told as that forgets the failure, and may begin what fails as well
// while node 0 still waits until all have forgotten.
TEST(simulated_failures, of_who_has_just_heard_of_one_are_forgotten_too) {
  const sim::network_model uneven{.jitter_ns = 10'000, .loss = 0.2};
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    turns t(seed, uneven, of_nodes(3), 1);
    t.fail_once_more_on(1);
    t.run();
  }
}

// A call that blocks is no part of the computation. Whoever waits until all is over waits for it.
TEST(simulated_failures, wait_for_no_call_that_blocks) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    turns t(seed, {.jitter_ns = 10'000}, of_nodes(3), 1);
    bool quiet = false;
    t.node(2).be_in_call(true);
    t.node(0).protocols.quiet.detect([&] { quiet = true; });
    t.run();
    EXPECT_FALSE(quiet);
    t.node(2).be_in_call(false);
    EXPECT_TRUE(t.comes_true(quiet));
  }
}

// Node n shares a network with n - 1 and n + 1 only.
TEST(simulated_failures, are_heard_of_by_way_of_others) {
  const sim::network_model uneven{.jitter_ns = 10'000, .loss = 0.2};
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::job_model chain = of_nodes(4);
    chain.links = [](net::node_id a, net::node_id b) -> std::optional<std::int64_t> {
      if (a + 1 != b && b + 1 != a) return std::nullopt;
      return 1'000;
    };
    turns(seed, uneven, chain, 2).run();
  }
}

struct short_one : threaded {
  void start() { terminate(); }
};

// Two nodes, one of which fails while the other is busy; and a third one comes.
class failure_and_comer {
 public:
  static constexpr std::int64_t busy_ns = 2'000'000;

  explicit failure_and_comer(std::uint64_t seed)
      : world_({.jitter_ns = 20'000}, seed), job_(world_, model()) {
    job_.when_settled = [this] {
      task_ns_ = 2'000;
      job_.node(0).as_worker([&] { token<fib_of>(13, &answer_); });
    };
    job_.when_made = [this](net::node_id n) { listen(job_.node(n)); };
    job_.node(0).as_worker([&] { token<fib_of>(16, &given_up_); });
  }

  void fail_at(std::int64_t ns) {
    world_.at(ns, [this] { fail(); });
  }
  // Before the one that fails has heard of the comer.
  void fail_when_counted() {
    job_.node(0).says = [this](net::node_id, cluster::kind k) {
      if (k == cluster::kind::known) world_.at(world_.now_ns(), [this] { fail(); });
    };
  }
  void come_at(std::int64_t ns) {
    world_.at(ns, [this] { come(); });
  }
  // After the others have been told to, which takes one of them long.
  void come_as_all_forget() {
    job_.node(1).hears = [this](net::node_id, cluster::kind k, std::span<const std::byte>) {
      if (k != cluster::kind::settled || std::exchange(comes_, true)) return false;
      world_.at(world_.now_ns(), [this] {
        job_.node(1).as_worker([] { token<short_one>(); });
        come();
      });
      return false;
    };
  }

  // What follows the failure is computed by all.
  void run() {
    ASSERT_TRUE(world_.run([&] { return answer_ != 0 && came_; }, 10'000'000'000))
        << (came_ ? "there is no answer" : "nobody has come");
    EXPECT_EQ(answer_, 233);
    std::uint64_t sent = 0, received = 0;
    const auto is_even = [&] {
      sent = received = 0;
      for (net::node_id n = 0; n < job_.size(); ++n) {
        sent += job_.node(n).protocols.counts.sent;
        received += job_.node(n).protocols.counts.received;
      }
      return sent == received;
    };
    EXPECT_TRUE(world_.run(is_even, world_.now_ns() + 10'000'000))
        << sent << " sent, " << received << " received";
  }
  // How often the comer was told, and how often before anybody gave it work.
  [[nodiscard]] unsigned told() const { return told_; }
  [[nodiscard]] unsigned told_first() const { return told_first_; }

 private:
  [[nodiscard]] sim::job_model model() {
    return {.nodes = 3, .founders = 2, .cost = [this](const detail::task&) { return task_ns_; }};
  }
  void fail() { job_.node(1).fail(std::make_exception_ptr(std::domain_error("no such place"))); }
  void come() {
    job_.come([this](net::node_id) { came_ = true; });
  }
  void listen(sim::simulated_node& comer) {
    comer.hears = [this, known = false](net::node_id, cluster::kind k,
                                        std::span<const std::byte>) mutable {
      known |= k == cluster::kind::known;
      told_ += k == cluster::kind::failed ? 1 : 0;
      told_first_ += k == cluster::kind::failed && !known ? 1 : 0;
      return false;
    };
  }

  std::int64_t task_ns_ = busy_ns;
  sim::world world_;
  sim::job job_;
  bool comes_ = false, came_ = false;
  unsigned told_ = 0, told_first_ = 0;
  long answer_ = 0, given_up_ = 0;
};

// Else a thread there would wait for ever for what has been given up.
TEST(simulated_failures, are_told_to_who_comes_before_all_have_given_up) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    failure_and_comer j(seed);
    j.fail_at(100'000);
    j.come_at(200'000);
    j.run();
    EXPECT_EQ(j.told_first(), 1U) << "by node 0, which knows it first";
  }
}

TEST(simulated_failures, are_told_to_who_comes_by_who_knows_it) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    failure_and_comer j(seed);
    j.come_at(200'000);
    j.fail_when_counted();
    j.run();
    EXPECT_EQ(j.told(), 1U) << "by node 0, as the one that fails has not heard of it";
  }
}

// Of those who come at the last moment as well.
TEST(simulated_failures, are_forgotten_by_who_comes_as_all_forget) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    failure_and_comer j(seed);
    j.fail_at(100'000);
    j.come_as_all_forget();
    j.run();
    EXPECT_EQ(j.told_first(), 1U) << "it came too late";
  }
}

TEST(simulated_failures, are_forgotten_by_who_comes_at_any_time) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    prng random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
    for (int i = 0; i < 8; ++i) {
      const std::int64_t fails_at = 500'000 + below(500'000);
      for (const std::int64_t from : {fails_at - 300'000, failure_and_comer::busy_ns - 200'000}) {
        failure_and_comer j(seed);
        j.fail_at(fails_at);
        j.come_at(from + below(400'000));
        j.run();
      }
    }
  }
}

}  // namespace
}  // namespace strata::test
