// SPDX-License-Identifier: Apache-2.0
// When a worker takes what another one has waived for it, under the policies rotator and locked.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "os/clock.hpp"
#include "sched/scheduler.hpp"
#include "strata/thread.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

unsigned worker_here() { return detail::this_place().id; }

// Some threads that yield to each other, on two workers. While any of them is on worker 1 it is the
// maker, one at a time: it calls make(). Those on worker 0 call turn(). Ends when one of them says
// false.
template <class Make, class Turn>
void on_two_workers(const char* policy, const Make& make, const Turn& turn) {
  options wanted;
  wanted.workers = 2;
  wanted.policy = policy;
  runtime rt(wanted);
  rt.run([&] {
    std::atomic<bool> over{false}, is_making{false};
    const auto live = [&] {
      while (!over.load(std::memory_order_relaxed)) {
        if (worker_here() == 0) {
          if (!turn()) over = true;
        } else if (!is_making.exchange(true)) {
          if (!make()) over = true;
          is_making = false;
        }
        this_thread::yield();
      }
    };
    std::vector<thread> all;
    for (int i = 0; i < 6; ++i) all.emplace_back(live);
    for (thread& t : all) t.join();
  });
}

// Waits for what the other worker does; not for ever, because that may have nothing to run.
template <class Done>
bool soon(const Done& done) {
  for (int i = 0; i < 100'000; ++i) {
    if (done()) return true;
    std::this_thread::yield();
  }
  return false;
}

// The dispatcher looks at every 33rd switch, and would do alone what each has to.
TEST(distribution, what_is_waived_is_taken_at_the_next_switch) {
  static constexpr std::size_t burst = 8;
  static constexpr unsigned few = 12;  // all that wait before it have their turn, and come again
  static constexpr int rounds = 40;
  std::atomic<unsigned> turns_taken{0};
  unsigned turns_before = 0;
  int at_once = 0, late = 0;
  const auto make = [&] {
    // Somebody has to be there.
    if (std::exchange(turns_before, turns_taken.load()) == turns_taken) return true;
    static constexpr unsigned not_there = UINT32_MAX;
    std::array<std::atomic<unsigned>, burst> ran_at;
    std::array<unsigned, burst> made_at{};
    std::vector<thread> made;
    made.reserve(burst);
    for (std::size_t i = 0; i < burst; ++i) {
      ran_at[i] = not_there;
      made.emplace_back([&turns_taken, &ran = ran_at[i]] {
        if (worker_here() == 0) ran = turns_taken.load();
      });
      made_at[i] = turns_taken;
    }
    const unsigned now = turns_taken;
    (void)soon([&] { return turns_taken - now > 70; });
    unsigned longest = 0;
    bool any = false;
    for (std::size_t i = 0; i < burst; ++i) {
      const unsigned ran = ran_at[i];
      if (ran == not_there) continue;
      any = true;
      if (ran > made_at[i]) longest = std::max(longest, ran - made_at[i]);
    }
    if (any) ++(longest <= few ? at_once : late);
    for (thread& t : made) t.join();
    return at_once + late < rounds;
  };
  const auto turn = [&] {
    ++turns_taken;
    // Far longer than it takes to be seen by another core.
    const std::int64_t end = os::now_ns() + 2'000;
    while (os::now_ns() < end) os::spin_pause();
    return true;
  };
  on_two_workers("rotator", make, turn);
  EXPECT_GE(at_once, rounds * 3 / 4) << late << " late";
}

// Under the lock that has been taken anyway, not one for each.
TEST(distribution, locked_takes_as_many_as_fit_at_once) {
  static constexpr std::size_t burst = 64;
  static constexpr int rounds_max = 5'000;  // beside others who want the cores most say nothing
  std::atomic<int> held{0};  // 1: worker 0 is to wait, 2: it does, 3: it may go on, 4: it did
  std::uint64_t hops = 0, locks = 0;
  bool fits = false;
  int rounds = 0;
  const auto make = [&] {
    std::vector<thread> made;
    held = 1;
    if (soon([&] { return held == 2; })) {
      made.reserve(burst);
      for (std::size_t i = 0; i < burst; ++i) made.emplace_back([] {});
      held = 3;
      while (held != 4) this_thread::yield();
      fits = hops >= burst / 8 && 2 * locks <= hops;
    } else if (int wait = 1; !held.compare_exchange_strong(wait, 0)) {
      held = 3;  // it waits by now, for nothing
      while (held != 4) this_thread::yield();
    }
    held = 0;
    for (thread& t : made) t.join();
    return !fits && ++rounds < rounds_max;
  };
  const auto turn = [&] {
    if (int wanted = 1; !held.compare_exchange_strong(wanted, 2)) return true;
    while (held != 3) std::this_thread::yield();
    const auto& events = detail::this_place().events;
    const std::uint64_t hops_before = events.hops.read();
    const std::uint64_t locks_before = events.queue_locks.read() - events.waived.read();
    this_thread::yield();
    hops = events.hops.read() - hops_before;
    locks = events.queue_locks.read() - events.waived.read() - locks_before;
    held = 4;
    return true;
  };
  on_two_workers("locked", make, turn);
  EXPECT_TRUE(fits) << "the last time " << hops << " at " << locks << " locks";
}

}  // namespace
}  // namespace strata::test
