// SPDX-License-Identifier: Apache-2.0
// Threads, fibers, fork-join branches and threads from outside wake and wait for each other; many
// threads at once; nobody starves.
#include <chrono>
#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../common/fib_forks.hpp"
#include "../common/fib_tokens.hpp"
#include "../sched/support.hpp"
#include "os/pages.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

class mixed_on : public leaves_no_frame {};
INSTANTIATE_TEST_SUITE_P(workers, mixed_on, ::testing::Values(1, 2, 4, 8),
                         ::testing::PrintToStringParamName());

TEST_P(mixed_on, threads_wait_for_tokens) {
  rt.run([] {
    std::vector<thread> threads;
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([i] {
        long value = 0;
        completion done;
        token<fib_tokens>(i % 12, to_global(&value), done.sptr());
        done.wait();
        EXPECT_EQ(value, fib(i % 12));
      });
    }
    for (thread& t : threads) t.join();
  });
}

TEST_P(mixed_on, forks_in_threads_and_locks_in_branches) {
  rt.run([] {
    mutex m;
    long sum = 0;
    std::vector<thread> threads;
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([&] {
        const auto add = [&](long n) {
          const std::lock_guard lock(m);
          const long seen = sum;
          if (n == 1) this_thread::yield();
          sum = seen + n;
        };
        for (int k = 0; k < 20; ++k) fork2join([&] { add(1); }, [&] { add(fib(6)); });
      });
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(sum, 20 * 20 * 9);
  });
}

// The thread is joined by another OS thread than the one that made it.
TEST_P(mixed_on, joined_from_outside) {
  for (int round = 0; round < 50; ++round) {
    std::optional<thread> made;
    int result = 0;
    rt.run([&] {
      made.emplace([&, round] {
        for (int i = 0; i < round % 5; ++i) this_thread::yield();
        result = round;
      });
    });
    if (round % 2 == 0) {
      made->join();
    } else {
      std::thread([&] { made->join(); }).join();
    }
    ASSERT_EQ(result, round);
  }
}

// A thread that only yields does not keep one that was made later from running.
TEST_P(mixed_on, yielding_lets_others_in) {
  rt.run([] {
    for (int round = 0; round < 20; ++round) {
      std::atomic<bool> flag{false};
      thread spins([&] {
        while (!flag) this_thread::yield();
      });
      thread sets([&] { flag = true; });
      spins.join();
      sets.join();
    }
    // Nor a whole crowd of them, nor work from outside.
    std::atomic<bool> flag{false};
    std::vector<thread> crowd;
    for (int i = 0; i < 8; ++i) {
      crowd.emplace_back([&] {
        while (!flag) this_thread::yield();
      });
    }
    fork2join([] { this_thread::yield(); }, [&] { flag = true; });
    for (thread& t : crowd) t.join();
  });
}

TEST_P(mixed_on, work_from_outside_gets_in_among_those_who_yield) {
  std::atomic<bool> flag{false};
  std::atomic<bool> yields{false};
  std::thread outside([&] {
    spin_until(yields);
    rt.submit([&] { flag = true; });
  });
  rt.run([&] {
    thread a([&] {
      yields = true;
      while (!flag) this_thread::yield();
    });
    thread b([&] {
      while (!flag) this_thread::yield();
    });
    a.join();
    b.join();
  });
  outside.join();
}

// A thread that computes for long without a yield after it has woken another: the other runs
// elsewhere meanwhile. It ends only when the other has.
TEST(mixed, who_was_woken_runs_on_another_worker) {
  if (!ready_threads_are_stolen()) GTEST_SKIP() << "it waits behind the thread that computes";
  runtime rt(with_workers(2));
  rt.run([] {
    for (int round = 0; round < 20; ++round) {
      binary_semaphore go(0);
      std::atomic<bool> done{false};
      thread other([&] {
        go.acquire();
        done = true;
      });
      for (int i = 0; i < round % 3; ++i) this_thread::yield();
      go.release();
      spin_until(done);
      other.join();
      // The same for one that was just made.
      done = false;
      thread made([&] { done = true; });
      spin_until(done);
      made.join();
    }
  });
}

TEST(mixed, two_runtimes_at_once) {
  runtime one(with_workers(2));
  runtime two(with_workers(2));
  mutex m;
  condition_variable changed;
  int turn = 0;
  constexpr int rounds = scaled(1000, 200);
  const auto play = [&](int mine) {
    thread t([&, mine] {
      for (int i = 0; i < rounds; ++i) {
        std::unique_lock lock(m);
        changed.wait(lock, [&] { return turn == mine; });
        turn = 1 - mine;
        changed.notify_one();
      }
    });
    t.join();
  };
  std::thread other([&] { two.run([&] { play(1); }); });
  one.run([&] { play(0); });
  other.join();
  EXPECT_EQ(turn, 0);
  // A thread of one runtime, joined in the other.
  std::optional<thread> made;
  std::atomic<bool> go{false};
  one.run([&] {
    made.emplace([&] {
      while (!go) this_thread::yield();
    });
  });
  two.run([&] {
    go = true;
    made->join();
  });
}

// Of the memory that the process has now.
std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  in >> all >> resident;
  return resident * os::page_bytes();
}

// Whether the system gives neighbours memory together, unasked.
bool uses_huge_pages() {
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string word;
  return in >> word && word == "[always]";
}

TEST(mixed, many_alive_at_once) {
  // What ThreadSanitizer keeps of each makes it slow, and shows nothing that fewer do not.
  static constexpr int many = thread_sanitizer ? 1'000 : slow_build ? 5'000 : 200'000;
  options small = with_workers(2);
  small.stack_bytes = scaled(16 * 1024, 64 * 1024);
  runtime rt(small);
  rt.run([] {
    const std::size_t before = resident_bytes();
    latch all(many + 1);
    std::atomic<int> through{0};
    std::vector<thread> threads;
    threads.reserve(many);
    for (int i = 0; i < many; ++i) {
      threads.emplace_back([&] {
        all.arrive_and_wait();
        ++through;
      });
    }
    all.arrive_and_wait();
    // Two pages of a stack, what is known of the thread, and the handle.
    if (!slow_build && !uses_huge_pages()) {
      EXPECT_LE((resident_bytes() - before) / many, 2 * os::page_bytes() + 512);
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(through, many);
  });
  rt.wait_idle();
  EXPECT_EQ(rt.stats().live_frames, 0);
}

// Everything at random: invariants hold, everybody ends.
TEST_P(mixed_on, storm) {
  const std::uint64_t first = seed();
  rt.run([&] {
    mutex m;
    recursive_timed_mutex r;
    shared_mutex rw;
    condition_variable changed;
    counting_semaphore<> s(2);
    long counter = 0, expected = 0, shared_value = 0;
    std::atomic<long> in_m{0}, writes{0};
    std::vector<thread> threads;
    for (std::uint64_t i = 0; i < 16; ++i) {
      threads.emplace_back([&, i] {
        prng random(first + i);
        for (int k = 0; k < scaled(200, 60); ++k) {
          switch (random.below(8)) {
            case 0: {
              const std::lock_guard lock(m);
              ++counter;
              ++in_m;
              changed.notify_one();
              break;
            }
            case 1: {
              std::unique_lock lock(m);
              changed.wait_for(lock, std::chrono::microseconds(random.below(100)));
              ++counter;
              ++in_m;
              break;
            }
            case 2: {
              std::unique_lock lock(r, std::chrono::microseconds(random.below(50)));
              if (lock.owns_lock()) {
                const std::lock_guard again(r);
                ++expected;
              }
              break;
            }
            case 3: {
              const std::lock_guard lock(rw);
              ++shared_value;
              ++writes;
              break;
            }
            case 4: {
              const std::shared_lock lock(rw);
              EXPECT_EQ(shared_value, writes);
              this_thread::yield();
              EXPECT_EQ(shared_value, writes);
              break;
            }
            case 5:
              s.acquire();
              this_thread::yield();
              s.release();
              break;
            case 6: {
              thread child([&] {
                const std::lock_guard lock(m);
                ++counter;
                ++in_m;
              });
              if (random.below(2) == 0) this_thread::yield();
              child.join();
              break;
            }
            default:
              EXPECT_EQ(fib(5), 5);
          }
        }
      });
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(counter, in_m);
    EXPECT_EQ(shared_value, writes);
    EXPECT_TRUE(s.try_acquire());
    EXPECT_TRUE(s.try_acquire());
    EXPECT_FALSE(s.try_acquire());
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

}  // namespace
}  // namespace strata::test
