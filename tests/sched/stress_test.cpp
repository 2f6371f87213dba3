// SPDX-License-Identifier: Apache-2.0
// Everything at once, at random: forks, scopes, loops, tokens, exceptions, work submitted from
// within and from outside, a second runtime. The tree that is walked follows from its seed, so what
// it must yield is computed serially, and nothing may be lost or done twice.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "strata/fiber.hpp"
#include "strata/parallel.hpp"
#include "strata/task_scope.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

enum class kind { leaf, fork, scope, loop, tokens, throwing, detached, sent, nested_run, kinds };

// A node of the tree: everything about it follows from its depth and seed.
struct node {
  int depth;
  std::uint64_t seed;

  [[nodiscard]] kind what() const {
    if (depth == 0) return kind::leaf;
    // Forks are what there is most of.
    const std::uint64_t r = prng(seed).below(2 * static_cast<std::uint64_t>(kind::kinds));
    return r < static_cast<std::uint64_t>(kind::kinds) ? static_cast<kind>(r) : kind::fork;
  }
  [[nodiscard]] int children() const {
    switch (what()) {
      case kind::leaf:
        return 0;
      case kind::scope:
      case kind::loop:
      case kind::tokens:
        return static_cast<int>(1 + prng(seed + 1).below(5));
      default:
        return 2;
    }
  }
  [[nodiscard]] node child(int i) const {
    return {depth - 1, prng(seed + 2 + static_cast<std::uint64_t>(i))()};
  }
  [[nodiscard]] std::uint64_t weight() const { return prng(seed + 100)() % 1000; }

  // The sum of the leaves' weights, however they are reached.
  [[nodiscard]] std::uint64_t sum() const {
    if (what() == kind::leaf) return weight();
    std::uint64_t s = 0;
    for (int i = 0; i < children(); ++i) s += child(i).sum();
    return s;
  }
};

// What all walks of one test share: where detached work leaves its sum.
struct storm {
  runtime& rt;
  runtime& other;
  std::atomic<std::uint64_t> detached{0};
  std::atomic<std::uint64_t> expected_detached{0};
};

struct thrown {
  std::uint64_t value;
};

std::uint64_t walk(storm& s, node n);

// A fiber cannot fork: it sends on, down to the leaves, and adds up with a slot.
struct walker : threaded {
  node n;
  global_ptr<std::uint64_t> result;
  slot_ptr done;
  std::array<std::uint64_t, 5> part;
  void start() {
    part.fill(0);
    const int children = n.children();
    if (children == 0) {
      put_sync(n.weight(), result, done);
      return terminate();
    }
    ALL.init(static_cast<std::uint32_t>(children));
    for (int i = 0; i < children; ++i) {
      const global_ptr<std::uint64_t> to = to_global(&part[static_cast<std::size_t>(i)]);
      i % 2 == 0 ? token<walker>(n.child(i), to, to_sptr(ALL))
                 : invoke<walker>(node_id(), n.child(i), to, to_sptr(ALL));
    }
  }
  void all() {
    put_sync(part[0] + part[1] + part[2] + part[3] + part[4], result, done);
    terminate();
  }
  fiber<&walker::all> ALL{this, 0};
};

struct sender : threaded {
  storm* s;
  node n;
  void start() {
    s->detached += n.sum();
    terminate();
  }
};

std::uint64_t walk_scope(storm& s, node n) {
  std::array<std::uint64_t, 5> part{};
  task_scope scope;
  for (int i = 0; i < n.children(); ++i) {
    scope.spawn([&s, n, i, &p = part[static_cast<std::size_t>(i)]] { p = walk(s, n.child(i)); });
  }
  scope.sync();
  return part[0] + part[1] + part[2] + part[3] + part[4];
}

std::uint64_t walk_throwing(storm& s, node n) {
  std::uint64_t right = 0;
  bool begun = false;
  try {
    fork2join([&]() -> int { throw thrown{walk(s, n.child(0))}; },
              [&] {
                begun = true;
                right = walk(s, n.child(1));
              });
  } catch (const thrown& t) {
    // A stack that waits with an exception in hand.
    if (!begun) right = walk(s, n.child(1));
    return t.value + right;
  }
  return 0;
}

std::uint64_t walk(storm& s, node n) {
  switch (n.what()) {
    case kind::leaf:
      return n.weight();
    case kind::scope:
      return walk_scope(s, n);
    case kind::loop:
      return parallel_reduce(
          0, n.children(), std::uint64_t{0}, [&](int i) { return walk(s, n.child(i)); },
          [](std::uint64_t a, std::uint64_t b) { return a + b; }, grain{1});
    case kind::tokens: {
      std::uint64_t result = 0;
      completion done;
      token<walker>(n, to_global(&result), done.sptr());
      done.wait();
      return result;
    }
    case kind::throwing:
      return walk_throwing(s, n);
    case kind::detached:
      s.expected_detached += n.child(1).sum();
      s.rt.submit([&s, n] { s.detached += walk(s, n.child(1)); });
      return walk(s, n.child(0)) + n.child(1).sum();
    case kind::sent:
      s.expected_detached += n.child(1).sum();
      token<sender>(&s, n.child(1));
      return walk(s, n.child(0)) + n.child(1).sum();
    case kind::nested_run:
      // Deep nodes enter the other runtime; it must not come back here, where all may be waiting.
      if (n.depth == 1) {
        return s.other
                   .run([&] {
                     return fork2join([&] { return n.child(0).sum(); },
                                      [&] { return n.child(1).sum(); });
                   })
                   .first +
               n.child(1).sum();
      }
      return s.rt.run([&] { return walk(s, n.child(0)) + walk(s, n.child(1)); });
    default: {
      auto [a, b] =
          fork2join([&] { return walk(s, n.child(0)); }, [&] { return walk(s, n.child(1)); });
      return a + b;
    }
  }
}

class storms : public ::testing::TestWithParam<unsigned> {
 protected:
  void weather(const options& wanted, int rounds, int depth) {
    const std::uint64_t first = seed();
    runtime rt(wanted);
    runtime other(with_workers(2));
    storm s{rt, other};
    std::atomic<int> wrong{0};
    std::atomic<std::uint64_t> submitted{0};
    std::atomic<std::uint64_t> expected_submitted{0};
    const auto outside = [&](std::uint64_t self) {
      prng random(first + 1000 * self);
      for (int round = 0; round < rounds; ++round) {
        const node root{depth, random()};
        if (random.below(4) == 0) {
          expected_submitted += root.sum();
          rt.submit([&s, &submitted, root] { submitted += walk(s, root); });
        } else if (rt.run([&] { return walk(s, root); }) != root.sum()) {
          ++wrong;
        }
      }
    };
    std::vector<std::thread> threads;
    for (std::uint64_t t = 1; t <= 3; ++t) threads.emplace_back(outside, t);
    for (std::thread& t : threads) t.join();
    rt.wait_idle();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(submitted, expected_submitted);
    EXPECT_EQ(s.detached, s.expected_detached);
    const statistics all = rt.stats();
    const worker_statistics total = all.total();
    EXPECT_EQ(all.live_frames, 0);
    EXPECT_EQ(total.suspensions, total.resumptions);
    EXPECT_EQ(total.tokens, total.activations);
    EXPECT_EQ(total.activations, total.terminations);
    double sum = 0;
    for (const std::int64_t ns : total.ns) sum += static_cast<double>(ns);
    const double expected =
        static_cast<double>(all.elapsed_ns) * static_cast<double>(all.workers.size());
    EXPECT_NEAR(sum, expected, 0.02 * expected + 1e5);
  }
};
INSTANTIATE_TEST_SUITE_P(workers, storms, ::testing::Values(1, 2, 4, 8, 64),
                         ::testing::PrintToStringParamName());

TEST_P(storms, lose_nothing) { weather(with_workers(GetParam()), scaled(150, 10), 10); }

TEST_P(storms, lose_nothing_on_small_stacks) {
  options small = with_workers(GetParam());
  small.stack_bytes = scaled(16, 64) * 1024;
  weather(small, scaled(60, 6), 10);
}

TEST_P(storms, lose_nothing_while_profiling) {
  options profiled = with_workers(GetParam());
  profiled.profile = true;
  weather(profiled, scaled(40, 5), 9);
}

TEST_P(storms, lose_nothing_when_idle_workers_sleep_at_once) {
  options sleepy = with_workers(GetParam());
  sleepy.spin_us = 0;
  weather(sleepy, scaled(80, 8), 9);
}

// Many short visits with everybody asleep in between: a wake-up that is lost stops the test.
TEST_P(storms, wake_up_for_every_visit) {
  options sleepy = with_workers(GetParam());
  sleepy.spin_us = 0;
  runtime rt(sleepy);
  for (int round = 0; round < scaled(1000, 200); ++round) {
    std::atomic<int> arrived{0};
    rt.submit([&] { ++arrived; });
    rt.run([&] { fork2join([&] { ++arrived; }, [&] { ++arrived; }); });
    if (round % 2 == 0) rt.wait_idle();
    spin_until([&] { return arrived == 3; });
  }
}

}  // namespace
}  // namespace strata::test
