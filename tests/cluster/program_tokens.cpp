// SPDX-License-Identifier: Apache-2.0
#include "program_tokens.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "program_support.hpp"
#include "strata/fiber.hpp"
#include "tests/common/require.hpp"
#include "tests/common/slow_builds.hpp"

namespace {

using namespace strata;
using test::fib_by_tokens;
using test::lone;
using test::require;

// Where tokens ran: each adds one to its node's counter, which lives on node 0.
struct where : threaded {
  global_ptr<std::atomic<std::uint64_t>> counters;
  int depth;
  slot_ptr done;
  void start() {
    if (depth > 0) {
      const auto c = counters;
      const int next = depth - 1;
      const slot_ptr d = done;
      token<where>(c, next, d);
      token<where>(c, next, d);
    } else {
      // Long enough that others come and help themselves.
      volatile int busy = 0;
      for (int i = 0; i < 20'000; ++i) busy = busy + 1;
      invoke<count_it>(counters.node(), counters, node_id(), done);
    }
    terminate();
  }
  struct count_it : threaded {
    global_ptr<std::atomic<std::uint64_t>> counters;
    node_id_t node;
    slot_ptr done;
    void start() {
      counters.local()[node].fetch_add(1);
      sync(done);
      terminate();
    }
  };
};

// Data comes before its signal; here it is looked at without waiting for that.
__attribute__((no_sanitize("thread"))) std::uint64_t glance(const volatile std::uint64_t& value) {
  return value;
}

// Some fit on a shelf, and some do not.
struct large : threaded {
  std::array<std::uint64_t, 100> values;
  global_ptr<std::uint64_t> sum;
  slot_ptr done;
  void start() {
    std::uint64_t all = 0;
    for (const std::uint64_t v : values) all += v;
    volatile int busy = 0;
    for (int i = 0; i < 10'000; ++i) busy = busy + 1;
    put_sync(all, sum, done);
    terminate();
  }
};

}  // namespace

void tokens(runtime& rt) {
  constexpr int n = test::scaled(24, 20);
  for (int round = 0; round < 3; ++round)
    require(rt.run([] { return fib_by_tokens(n); }) == (n == 24 ? 46368 : 6765), "fib(n)");
  rt.wait_idle();
}

void spread(runtime& rt) {
  constexpr int depth = 12;
  std::array<std::atomic<std::uint64_t>, 64> counters{};
  rt.run([&] {
    completion done(1U << depth);
    token<where>(to_global(counters.data()), depth, done.sptr());
    done.wait();
  });
  std::uint64_t sum = 0;
  unsigned helped = 0;
  for (const auto& c : counters) {
    sum += c;
    helped += c > 0 ? 1 : 0;
  }
  require(sum == 1U << depth, "every leaf ran once");
  require(helped >= 2, "another node helped");
}

// One token at a time, pushed by a fiber that neither pushes another nor ends before it has run: a
// neighbour that asks just then must not be told that there is nothing.
void lone_tokens(runtime& rt) {
  rt.run([] {
    constexpr std::uint64_t n = 500;
    std::uint64_t ran = 0;
    completion done(n);
    for (std::uint64_t i = 1; i <= n; ++i) {
      token<lone>(to_global(&ran), done.sptr(), i);
      while (glance(ran) != i) {
      }
    }
    done.wait();
  });
}

void large_tokens(runtime& rt) {
  constexpr std::uint64_t n = 500;
  std::vector<std::uint64_t> sums(n), ran(n);
  rt.run([&] {
    completion done(2 * n);
    std::array<std::uint64_t, 100> values{};
    for (std::uint64_t i = 0; i < n; ++i) {
      values.fill(i);
      token<large>(values, to_global(&sums[i]), done.sptr());
      token<lone>(to_global(&ran[i]), done.sptr(), i);
    }
    done.wait();
  });
  for (std::uint64_t i = 0; i < n; ++i) {
    require(sums[i] == 100 * i, "all values arrived");
    require(ran[i] == i, "and the small ones");
  }
}

// Tokens that nobody waits for: what the root has left behind runs, on whatever shelf it lies.
void left_behind(runtime& rt) {
  for (int round = 1; round <= 50; ++round) {
    std::atomic<std::uint64_t> counters[64]{};
    rt.run([&] {
      for (int i = 0; i < 3; ++i) token<where>(to_global(&counters[0]), 3, slot_ptr{});
    });
    rt.wait_idle();
    std::uint64_t sum = 0;
    for (const auto& c : counters) sum += c;
    require(sum == 24, "every leaf ran once");
  }
}
