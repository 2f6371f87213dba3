// SPDX-License-Identifier: Apache-2.0
// What the counters say of each policy: under rotator no task goes from worker to worker by an
// atomic read-modify-write (requirement L6), and those words could not be changed by one.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "strata/detail/load_store.hpp"
#include "strata/thread.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

template <class Word>
concept can_be_modified = requires(Word w) {
  w.fetch_add(1);
}
|| requires(Word w) { ++w; }
|| requires(Word w) { w.exchange(1); }
|| requires(Word w, int expected) { w.compare_exchange_strong(expected, 1); }
|| requires(Word w, int expected) { w.compare_exchange_weak(expected, 1); };
static_assert(can_be_modified<std::atomic<int>>);
static_assert(!can_be_modified<detail::load_store<int>>);

constexpr unsigned threads = 64;
constexpr unsigned turns = scaled(200u, 50u);

// Threads that yield, block and are woken, on two workers: until `enough`, which a worker that
// others keep from its core may put off.
template <class Enough>
worker_statistics after_switches(const char* policy, Enough enough) {
  options wanted;
  wanted.workers = 2;
  wanted.policy = policy;
  runtime rt(wanted);
  unsigned met = 0;
  bool done = false;
  rt.run([&] {
    barrier meeting(threads,
                    [&]() noexcept { done = ++met >= turns && enough(rt.stats().total()); });
    std::vector<thread> made;
    made.reserve(threads);
    for (unsigned i = 0; i < threads; ++i) {
      made.emplace_back([&] {
        do {
          this_thread::yield();
          meeting.arrive_and_wait();
        } while (!done);
      });
    }
    for (thread& t : made) t.join();
  });
  const worker_statistics all = rt.stats().total();
  EXPECT_GE(all.resumptions, std::uint64_t{threads - 1} * met) << policy;
  return all;
}

TEST(counters, rotator_moves_threads_without_locks_and_read_modify_writes) {
  const worker_statistics all =
      after_switches("rotator", [](const worker_statistics& s) { return s.hops > 0; });
  EXPECT_GT(all.waived, 0u);
  EXPECT_GT(all.hops, 0u);
  EXPECT_EQ(all.queue_locks, 0u);
  EXPECT_EQ(all.read_modify_writes, 0u);
}

TEST(counters, locked_pays_two_read_modify_writes_for_each_lock) {
  const worker_statistics all =
      after_switches("locked", [](const worker_statistics& s) { return s.queue_locks > 0; });
  EXPECT_GT(all.queue_locks, 0u);
  EXPECT_EQ(all.read_modify_writes, 2 * all.queue_locks);
}

TEST(counters, whoever_steals_pays_for_each_attempt_that_finds_something) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  options wanted;
  wanted.workers = 2;
  wanted.policy = "steal";
  runtime rt(wanted);
  constexpr unsigned stolen = 10;
  rt.run([] {
    for (unsigned i = 0; i < stolen; ++i) fork_stolen([] {}, [] {});
  });
  const statistics s = rt.stats();
  const worker_statistics all = s.total();
  EXPECT_EQ(all.queue_locks, 0u);
  EXPECT_GE(all.steals, stolen);
  EXPECT_GE(all.read_modify_writes, all.steals + all.steals_lost);
  EXPECT_NE(s.to_text().find("read-mod-write"), std::string::npos) << s.to_text();
}

}  // namespace
}  // namespace strata::test
