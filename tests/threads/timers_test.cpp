// SPDX-License-Identifier: Apache-2.0
// The thread that sleeps for all deadlines is woken for those that are earlier than what it sleeps
// until, and for no others.
#include "sched/timers.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>

#include "../common/thread_asleep.hpp"
#include "../sched/support.hpp"
#include "os/clock.hpp"

namespace strata::test {
namespace {

// Tells by which thread it is fired.
struct noted : detail::timers::entry {
  noted() { fire = &note; }
  static void note(detail::timers::entry& e) noexcept { static_cast<noted&>(e).by = gettid(); }
  std::atomic<pid_t> by{0};
};

long naps_of(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  long count = -1;
  for (std::string word; status >> word;) {
    if (word == "voluntary_ctxt_switches:") status >> count;
  }
  return count;
}

pid_t fired_soon(detail::timers& all) {
  noted soon;
  all.add(soon, os::now_ns() + 1'000'000);
  spin_until([&] { return soon.by.load(std::memory_order_acquire) != 0; });
  return soon.by;
}

// As of one who waits again and again for what comes in time.
TEST(timers, deadlines_that_do_not_come_wake_nobody) {
  constexpr std::int64_t hour_ns = 3'600'000'000'000;
  constexpr int waits = 100;
  detail::timers all;
  const pid_t thread = fired_soon(all);
  spin_until([&] { return sleeps(thread); });
  const long before = naps_of(thread);
  for (int i = 0; i < waits; ++i) {
    noted never;
    all.add(never, os::now_ns() + hour_ns);
    spin_until([&] { return sleeps(thread); });
    all.remove(never);
  }
  EXPECT_LE(naps_of(thread) - before, 10);
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(fired_soon(all), thread);  // although it sleeps until then
}

TEST(timers, an_earlier_deadline_is_not_slept_through) {
  constexpr std::int64_t hour_ns = 3'600'000'000'000;
  detail::timers all;
  noted late;
  all.add(late, os::now_ns() + hour_ns);
  noted later;
  all.add(later, os::now_ns() + 2 * hour_ns);
  all.remove(late);
  for (int i = 0; i < 10; ++i) EXPECT_GT(fired_soon(all), 0);
  EXPECT_EQ(later.by, 0);
  all.remove(later);
}

}  // namespace
}  // namespace strata::test
