// SPDX-License-Identifier: Apache-2.0
// Nobody waits for a mutex for ever because another takes it again and again.
#include <atomic>
#include <vector>

#include "../sched/support.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

class fairness : public testing::TestWithParam<unsigned> {};

TEST_P(fairness, of_a_mutex_that_is_taken_again_at_once) {
  runtime rt(with_workers(GetParam()));
  rt.run([] {
    mutex m;
    int got = 0;
    constexpr int waiters = 5;
    thread hog([&] {
      for (bool all = false; !all;) {
        const std::lock_guard lock(m);
        all = got == waiters;
        this_thread::yield();
      }
    });
    std::vector<thread> others;
    for (int i = 0; i < waiters; ++i) {
      others.emplace_back([&] {
        const std::lock_guard lock(m);
        ++got;
      });
    }
    for (thread& t : others) t.join();
    hog.join();
  });
}

// Insisting, giving up after a deadline and just trying, all at once.
TEST_P(fairness, mixed_with_deadlines_and_attempts_still_excludes) {
  runtime rt(with_workers(GetParam()));
  rt.run([] {
    timed_mutex m;
    std::atomic<int> inside{0};
    long counter = 0;
    std::atomic<long> entered{0};
    const auto critical = [&] {
      EXPECT_EQ(inside.fetch_add(1), 0);
      ++counter;
      ++entered;
      this_thread::yield();
      inside.fetch_sub(1);
      m.unlock();
    };
    std::vector<thread> threads;
    for (int i = 0; i < 12; ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 200; ++round) {
          if (i % 3 == 0) {
            m.lock();
          } else if (i % 3 == 1) {
            if (!m.try_lock_for(std::chrono::microseconds(20))) continue;
          } else if (!m.try_lock()) {
            this_thread::yield();
            continue;
          }
          critical();
        }
      });
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(counter, entered);
    EXPECT_GE(counter, 4 * 200);
  });
}

// Whom a kernel thread wakes, or a message, takes a turn like those that are ready already.
class woken_from_outside : public testing::TestWithParam<int> {};

TEST_P(woken_from_outside, takes_its_turn_among_threads_that_yield) {
  runtime rt(with_workers(1));
  const int yielding = GetParam();
  rt.run([yielding] {
    for (int round = 0; round < 20; ++round) {
      binary_semaphore call(0);
      std::atomic<bool> called{false}, ran{false};
      int yields = 0;
      thread waiter([&] {
        call.acquire();
        ran = true;
      });
      std::vector<thread> busy;
      for (int i = 0; i < yielding; ++i) {
        busy.emplace_back([&] {
          while (!ran) {
            yields += called ? 1 : 0;
            this_thread::yield();
          }
        });
      }
      std::thread outside([&] {
        call.release();
        called = true;
      });
      waiter.join();
      outside.join();
      for (thread& t : busy) t.join();
      EXPECT_LE(yields, 4 * yielding);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(threads, woken_from_outside, testing::Values(1, 2, 10));

INSTANTIATE_TEST_SUITE_P(workers, fairness, testing::Values(1U, 2U, 4U));

}  // namespace
}  // namespace strata::test
