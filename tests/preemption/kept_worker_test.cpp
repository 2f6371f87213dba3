// SPDX-License-Identifier: Apache-2.0
// A preemptible thread is not interrupted while it uses its worker's value.
#include <atomic>
#include <chrono>

#include "../sched/support.hpp"
#include "sched/ticker.hpp"
#include "strata/per_worker.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

TEST(preemption_of_per_worker, waits_until_the_value_is_not_used) {
  if (!detail::ticker::is_safe()) GTEST_SKIP() << "nobody can be interrupted in this program";
  options settings = with_workers(1);
  settings.preempt_us = 500;
  runtime rt(settings);
  rt.run([] {
    per_worker<int> all;
    std::atomic<bool> other_ran{false};
    thread computes({.name = "computes", .preemptible = true}, [&] {
      all.use([&](int& mine) {
        // Long enough for some ticks, on any machine.
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
        while (std::chrono::steady_clock::now() < until) ++mine;
        EXPECT_FALSE(other_ran);
      });
      while (!other_ran) {  // now it gives way
      }
    });
    thread other([&] {
      all.use([&](int& mine) { mine = 0; });
      other_ran = true;
    });
    computes.join();
    other.join();
  });
}

}  // namespace
}  // namespace strata::test
