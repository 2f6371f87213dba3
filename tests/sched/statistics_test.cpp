// SPDX-License-Identifier: Apache-2.0
// Where the time went, what was done, and work and span.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <string>
#include <thread>

#include "../common/fib_forks.hpp"
#include "os/clock.hpp"
#include "strata/fiber.hpp"
#include "strata/parallel.hpp"
#include "strata/task_scope.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

// Takes about ns nanoseconds when it has the processor for itself.
void busy(std::int64_t ns) {
  const std::int64_t until = os::now_ns() + ns;
  while (os::now_ns() < until) {
  }
}

bool all_time_is_accounted(const statistics& s) {
  const auto elapsed = static_cast<double>(s.elapsed_ns);
  return std::all_of(s.workers.begin(), s.workers.end(), [&](const worker_statistics& w) {
    const std::int64_t sum = std::accumulate(w.ns.begin(), w.ns.end(), std::int64_t{0});
    return std::abs(static_cast<double>(sum) - elapsed) < 0.02 * elapsed + 1e5;
  });
}

// A reader that loses the processor in the middle of reading sees one worker later than another, so
// one good reading of a few is enough.
void expect_all_time_accounted(const runtime& rt) {
  for (int reading = 0; reading < 100; ++reading) {
    if (all_time_is_accounted(rt.stats())) return;
  }
  ADD_FAILURE() << rt.stats().to_text();
}

TEST(statistics, every_nanosecond_is_in_a_bucket) {
  for (const unsigned workers : {1U, 2U, 8U}) {
    runtime rt(with_workers(workers));
    for (int round = 0; round < 5; ++round) {
      rt.run([] { return fib(scaled(24, 16)); });
      rt.wait_idle();
      expect_all_time_accounted(rt);
    }
    std::thread outside([&] { rt.run([] { return fib(scaled(24, 16)); }); });
    rt.run([] { return fib(scaled(24, 16)); });
    outside.join();
    expect_all_time_accounted(rt);
  }
}

// On a machine that is busy with something else the second worker may search for long before it
// gets to sleep, so one good run of a few is enough.
TEST(statistics, work_is_where_the_work_was) {
  bool as_expected = false;
  for (int round = 0; round < 10 && !as_expected; ++round) {
    runtime rt(with_workers(2));
    const std::int64_t began = os::now_ns();
    rt.run([] { busy(50'000'000); });  // nothing to steal: one worker works, the other sleeps
    const auto took = static_cast<double>(os::now_ns() - began);
    const worker_statistics total = rt.stats().total();
    const auto ns = [&](bucket b) {
      return static_cast<double>(total.ns[static_cast<std::size_t>(b)]);
    };
    as_expected = ns(bucket::work) > 0.9 * took && ns(bucket::work) < 1.5 * took + 5e6 &&
                  ns(bucket::idle) > 0.5 * took;
  }
  EXPECT_TRUE(as_expected);
}

TEST(statistics, count_what_was_done) {
  struct leaf : threaded {
    slot_ptr done;
    void start() {
      sync(done);
      terminate();
    }
  };
  runtime rt(with_workers(2));
  rt.run([] {
    completion done(10);
    for (int i = 0; i < 6; ++i) token<leaf>(done.sptr());
    for (int i = 0; i < 4; ++i) invoke<leaf>(node_id(), done.sptr());
    done.wait();
    task_scope scope;
    for (int i = 0; i < 5; ++i) scope.spawn([] {});
    scope.sync();
  });
  const statistics s = rt.stats();
  const worker_statistics total = s.total();
  EXPECT_EQ(total.tokens, 10u);
  EXPECT_EQ(total.activations, 10u);
  EXPECT_EQ(total.terminations, 10u);
  EXPECT_EQ(total.fibers, 0u);
  EXPECT_EQ(total.spawns, 5u);
  EXPECT_EQ(total.suspensions, total.resumptions);
  EXPECT_GE(total.dispatched, 1u);
  EXPECT_EQ(s.live_frames, 0);
  EXPECT_GE(s.stacks_max, 1u);
  EXPECT_EQ(s.work_ns, 0);
  const std::string text = s.to_text();
  for (const char* word : {"work", "activations", "10", "live frames"}) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  }
}

TEST(statistics, can_be_read_while_workers_run) {
  runtime rt(with_workers(4));
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) static_cast<void>(rt.stats().to_text());
  });
  for (int round = 0; round < 10; ++round) {
    rt.run([] {
      parallel_for(0, 1000, [](int) {
        task_scope scope;
        scope.spawn([] {});
        scope.sync();
      });
    });
  }
  done = true;
  reader.join();
  EXPECT_EQ(rt.stats().live_frames, 0);
}

options profiled(unsigned workers) {
  options o = with_workers(workers);
  o.profile = true;
  return o;
}

TEST(profile, fib_has_more_work_than_span) {
  constexpr int n = scaled(20, 14);
  for (const unsigned workers : {1U, 2U, 4U}) {
    double parallelism = 0;
    for (int round = 0; round < 200 && parallelism <= scaled(4, 2); ++round) {
      runtime rt(profiled(workers));
      EXPECT_EQ(rt.run([] { return fib(n); }), scaled(6765, 377));
      const statistics s = rt.stats();
      EXPECT_GT(s.span_ns, 0);
      EXPECT_GE(s.work_ns, s.span_ns);
      // The longest chain has n forks, the tree has 1.6^n.
      EXPECT_LT(s.work_ns / s.span_ns, std::pow(1.7, n));
      EXPECT_EQ(s.total().forks, scaled(10945u, 609u));
      EXPECT_NE(s.to_text().find("parallelism"), std::string::npos);
      // A chain that lost the processor for a while looks longer than it is.
      parallelism = std::max(parallelism, s.work_ns / s.span_ns);
    }
    EXPECT_GT(parallelism, scaled(4, 2));
  }
}

void leaves(int depth, std::int64_t ns) {
  if (depth == 0) return busy(ns);
  fork2join([=] { leaves(depth - 1, ns); }, [=] { leaves(depth - 1, ns); });
}

// Asked for alone, and with all the rest, where it is one line of it.
TEST(profile, is_printed_when_the_runtime_stops) {
  const auto printed = [](options o) {
    testing::internal::CaptureStderr();
    {
      runtime rt(o);
      rt.run([] { return fib(10); });
    }
    return testing::internal::GetCapturedStderr();
  };
  const std::string alone = printed(profiled(2));
  EXPECT_EQ(alone.rfind("strata: work ", 0), 0U) << alone;
  EXPECT_NE(alone.find(" s, parallelism "), std::string::npos) << alone;
  EXPECT_EQ(std::count(alone.begin(), alone.end(), '\n'), 1) << alone;
  options both = profiled(2);
  both.stats = true;
  const std::string all = printed(both);
  const auto line = all.find("strata: work ");
  EXPECT_NE(line, std::string::npos) << all;
  EXPECT_EQ(all.find("strata: work ", line + 1), std::string::npos) << all;
  EXPECT_EQ(printed(with_workers(2)), "");
}

// Time in which the processor was taken away counts, so the best of a few runs is looked at.
TEST(profile, a_balanced_tree_has_the_parallelism_of_its_leaves) {
  constexpr std::int64_t leaf_ns = 100'000;
  constexpr int depth = 5;
  double closest_work = 1e300;
  double parallelism = 0;
  for (int round = 0; round < 200 && (closest_work >= 3 * 32 * leaf_ns || parallelism <= 8);
       ++round) {
    runtime rt(profiled(2));
    rt.run([] { leaves(depth, leaf_ns); });
    const statistics s = rt.stats();
    EXPECT_GE(s.work_ns, 0.99 * 32 * leaf_ns);
    EXPECT_GE(s.span_ns, 0.99 * leaf_ns);
    closest_work = std::min(closest_work, s.work_ns);
    parallelism = std::max(parallelism, s.work_ns / s.span_ns);
  }
  EXPECT_LT(closest_work, 3 * 32 * leaf_ns);
  EXPECT_GT(parallelism, 8);
  EXPECT_LT(parallelism, 33);
}

TEST(profile, a_chain_has_no_parallelism) {
  double parallelism = 1e300;
  for (int round = 0; round < 200 && parallelism >= 1.5; ++round) {
    runtime rt(profiled(2));
    rt.run([] {
      for (int i = 0; i < 20; ++i) fork2join([] { busy(50'000); }, [] {});
    });
    const statistics s = rt.stats();
    EXPECT_GE(s.work_ns, s.span_ns);
    parallelism = std::min(parallelism, s.work_ns / s.span_ns);
  }
  EXPECT_LT(parallelism, 1.5);
}

TEST(profile, scopes_loops_and_fibers_are_measured) {
  struct node : threaded {
    int depth;
    slot_ptr done;
    void start() {
      if (depth == 0) {
        busy(20'000);
        sync(done);
        terminate();
      } else {
        token<node>(depth - 1, to_sptr(BOTH));
        token<node>(depth - 1, to_sptr(BOTH));
      }
    }
    void both() {
      sync(done);
      terminate();
    }
    fiber<&node::both> BOTH{this, 2};
  };
  double in_scope = 0;
  double in_loop = 0;
  double in_fibers = 0;
  // Sixteen leaves at once, if nobody is disturbed. A thread that loses its core in the middle of a
  // leaf lengthens the span, and one that loses it just behind a signal the work alone: on a busy
  // machine some rounds show little, or anything.
  const auto is_plausible = [](double measured) { return measured > 4 && measured < 17; };
  const auto keep = [&](double& kept, double measured) {
    if (!is_plausible(kept)) kept = measured;
  };
  // One runtime for all rounds: the first rounds pay for memory that is touched for the first time.
  runtime rt(profiled(2));
  for (int round = 0;
       round < 200 && !(is_plausible(in_scope) && is_plausible(in_loop) && is_plausible(in_fibers));
       ++round) {
    const auto parallelism = [&] {
      const statistics s = rt.stats();
      EXPECT_GE(s.work_ns, 0.99 * 16 * 20'000);
      EXPECT_GE(s.work_ns, s.span_ns);
      EXPECT_GT(s.span_ns, 0.99 * 20'000);
      return s.work_ns / s.span_ns;
    };
    rt.run([] {
      task_scope scope;
      for (int i = 0; i < 16; ++i) scope.spawn([] { busy(20'000); });
      scope.sync();
    });
    keep(in_scope, parallelism());
    rt.run([] {
      parallel_for(
          0, 16, [](int) { busy(20'000); }, grain{1});
    });
    keep(in_loop, parallelism());
    rt.run([] {
      completion done;
      token<node>(4, done.sptr());
      done.wait();
    });
    keep(in_fibers, parallelism());
  }
  for (const double measured : {in_scope, in_loop, in_fibers}) {
    EXPECT_GT(measured, 4);
    EXPECT_LT(measured, 17);
  }
}

TEST(profile, deep_nesting_and_exceptions_are_measured_too) {
  options o = profiled(2);
  o.stack_bytes = scaled(16, 64) * 1024;
  runtime rt(o);
  struct nest {
    static long deep(long depth) {
      if (depth == 0) return 0;
      auto [a, b] = fork2join([=] { return deep(depth - 1); }, [] { return 1L; });
      return a + b;
    }
    static int thrower(int depth) {
      if (depth == 0) throw std::string("bottom");
      return fork2join([=] { return thrower(depth - 1); }, [] { return 1; }).first;
    }
  };
  EXPECT_EQ(rt.run([] { return nest::deep(2000); }), 2000);
  EXPECT_GE(rt.stats().work_ns, rt.stats().span_ns);
  EXPECT_THROW(rt.run([] { return nest::thrower(200); }), std::string);
  EXPECT_EQ(rt.run([] { return fib(8); }), 21);
  std::atomic<int> ran{0};
  // A task without a measured root.
  rt.submit([&] {
    task_scope scope;
    scope.spawn([&] { ++ran; });
    fork2join([&] { ++ran; }, [&] { ++ran; });
    scope.sync();
  });
  rt.wait_idle();
  EXPECT_EQ(ran, 3);
}

}  // namespace
}  // namespace strata::test
