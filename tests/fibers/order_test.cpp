// SPDX-License-Identifier: Apache-2.0
// In which order a worker takes its tokens: the newest first, and the oldest, which usually is the
// root of most work, stays for thieves, also where fibers are ready all the time.
#include <gtest/gtest.h>

#include <atomic>

#include "../sched/support.hpp"
#include "strata/fiber.hpp"
#include "strata/slot.hpp"
#include "strata/task_scope.hpp"

namespace strata::test {
namespace {

constexpr int chain_length = 1000;

struct progress {
  int steps = 0;  // of one worker
  int steps_before_the_oldest = -1;
};

struct oldest : threaded {
  progress* seen;
  slot_ptr done;
  void start() {
    seen->steps_before_the_oldest = seen->steps;
    sync(done);
    terminate();
  }
};

// Each step leaves a token and a fiber that is ready.
struct step : threaded {
  progress* seen;
  slot_ptr done;
  void start() {
    if (++seen->steps != chain_length) token<step>(seen, done);
    sync(to_sptr(REST));
  }
  void rest() {
    sync(done);
    terminate();
  }
  fiber<&step::rest> REST{this, 1};
};

TEST(order, the_oldest_token_is_left_for_thieves) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  runtime rt(with_workers(2));
  rt.run([] {
    std::atomic<bool> busy{false}, release{false};
    task_scope scope;
    scope.spawn([&] {
      busy = true;
      spin_until(release);
    });
    spin_until(busy);
    // The other worker, which is hungry no more, has asked for more before that: the first token is
    // where thieves can take it.
    progress seen;
    completion done{chain_length + 1};
    token<oldest>(&seen, done.sptr());
    token<step>(&seen, done.sptr());
    done.wait();
    release = true;
    scope.sync();
    EXPECT_EQ(seen.steps_before_the_oldest, chain_length);
  });
}

}  // namespace
}  // namespace strata::test
