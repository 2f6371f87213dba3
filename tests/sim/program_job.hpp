// SPDX-License-Identifier: Apache-2.0
// A simulated job whose nodes run threads of a program: what a program can call is called as it is,
// over a network that misbehaves.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/simulated_job.hpp"
#include "strata/remote_thread.hpp"
#include "support.hpp"

namespace strata::test {

class program_job {
 public:
  static constexpr sim::network_model misbehaving{
      .jitter_ns = 20'000, .loss = 0.02, .duplication = 0.02};
  // Where silence is taken for the loss of a node.
  static constexpr sim::network_model disorderly{.jitter_ns = 20'000, .duplication = 0.02};
  static constexpr std::int64_t ms = 1'000'000;

  explicit program_job(std::uint64_t seed, const sim::job_model& model,
                       const sim::network_model& network = misbehaving)
      : world(network, seed), random_(seed) {
    job.emplace(world, model);
  }
  // A thread that is left over may have a timer, for which its scheduler's end would wait for ever;
  // and its stack would go while the table of all waiters still leads to it. Nothing that followed
  // would mean anything.
  ~program_job() {
    if (!job) return;
    const unsigned left = threads();
    const std::size_t on_stacks = stacks();
    if (left == 0 && on_stacks == 0) return;
    std::fflush(nullptr);
    std::fprintf(
        stderr,
        "program_job: %u threads and %zu stacks are left over, this process ends: see which "
        "with the STRATA_TEST_SEED above\n",
        left, on_stacks);
    std::fflush(nullptr);
    std::_Exit(1);
  }
  program_job(const program_job&) = delete;
  program_job& operator=(const program_job&) = delete;

  void begin(net::node_id n, std::function<void()> body) {
    job->node(n).begin_thread(std::move(body));
  }
  // A test's threads of one node share its draws with all others: there is one order of everything.
  [[nodiscard]] std::uint64_t below(std::uint64_t n) { return random_.below(n); }
  [[nodiscard]] std::int64_t now_ns() const { return world.now_ns(); }
  // By a thread of the program.
  void pause(std::uint64_t ns_max) {
    job->node(strata::node_id()).pause(1 + static_cast<std::int64_t>(below(ns_max)));
  }

  // For nodes below `nodes`: nothing passes between some of them, now and then, for a while.
  void cut_now_and_then(net::node_id nodes, int times = 8) {
    for (; times > 0; --times) {
      const auto a = static_cast<net::node_id>(below(nodes));
      const auto b = static_cast<net::node_id>(below(nodes));
      const auto from_ns = static_cast<std::int64_t>(below(30 * ms));
      const auto lasts_ns = static_cast<std::int64_t>(below(10 * ms));
      world.at(from_ns, [this, a, b] { world.cut(a, b); });
      world.at(from_ns + lasts_ns, [this, a, b] { world.join(a, b); });
    }
  }

  // One of the nodes below `nodes` crashes, `from_ns` from the beginning or up to `within_ns`
  // later.
  struct crash {
    net::node_id victim;
    std::int64_t at_ns;
  };
  crash crash_one(net::node_id nodes, std::int64_t within_ns, std::int64_t from_ns = 0) {
    const auto victim = static_cast<net::node_id>(below(nodes));
    const crash c{
        victim, from_ns + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(within_ns)))};
    world.at(c.at_ns, [this, victim] { job->node(victim).crash(); });
    return c;
  }

  [[nodiscard]] unsigned threads() {
    unsigned all = 0;
    for (unsigned n = 0; n < job->size(); ++n)
      all += job->node(static_cast<net::node_id>(n)).threads();
    return all;
  }
  [[nodiscard]] std::size_t stacks() {
    std::size_t all = 0;
    for (unsigned n = 0; n < job->size(); ++n)
      all += job->node(static_cast<net::node_id>(n)).stacks();
    return all;
  }
  // Until all threads have ended, and whatever else is said. The limit, from now on, is far more
  // than a test takes, and soon reached by threads that look again and again.
  void run(
      const std::function<bool()>& and_then = [] { return true; },
      std::int64_t limit_ns = 20'000 * ms) {
    EXPECT_TRUE(world.run([&] { return threads() == 0 && and_then(); }, now_ns() + limit_ns))
        << threads() << " threads wait for ever";
    try {
      if (const std::exception_ptr error = job->failure()) std::rethrow_exception(error);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "a thread ended with " << e.what();
    }
  }
  // What a replay has to repeat.
  [[nodiscard]] auto outcome() const {
    return std::tuple(world.now_ns(), world.packets(), world.happenings());
  }

  sim::world world;
  std::optional<sim::job> job;

 private:
  prng random_;
};

}  // namespace strata::test
