// SPDX-License-Identifier: Apache-2.0
// Nobody waits for a mutex for ever because another takes it again and again, nor for a worker
// because those that have one only yield to each other.
#include <atomic>
#include <vector>

#include "../common/counted.hpp"
#include "../common/enabled_together.hpp"
#include "../common/yielding_tree.hpp"
#include "../sched/support.hpp"
#include "strata/fiber.hpp"
#include "strata/task_scope.hpp"
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

// However the one before it came to its turn, and not behind the one that yields.
TEST(yielding_once, runs_whom_a_kernel_thread_has_woken) {
  runtime rt(with_workers(1));
  rt.run([] {
    constexpr int rounds = 50;
    binary_semaphore call(0);
    int turns = 0;
    thread waiter([&] {
      while (turns < rounds) {
        call.acquire();
        ++turns;
      }
    });
    this_thread::yield();
    for (int round = 1; round <= rounds; ++round) {
      std::thread([&] { call.release(); }).join();
      this_thread::yield();
      EXPECT_EQ(turns, round);
    }
    waiter.join();
  });
}

// Whoever waits for something that has not begun lets it begin by yielding, wherever it waits.
class yielding : public testing::TestWithParam<unsigned> {
 protected:
  runtime rt{with_workers(GetParam())};
};

template <class Done>
void yield_until(const Done& done) {
  while (!done()) this_thread::yield();
}

TEST_P(yielding, lets_the_other_branch_of_a_fork_begin) {
  rt.run([] {
    for (int round = 0; round < 100; ++round) {
      std::atomic<bool> begun{false};
      fork2join([&] { yield_until([&] { return begun.load(); }); }, [&] { begun = true; });
    }
  });
}

TEST_P(yielding, lets_all_branches_of_a_tree_meet) {
  struct meet {
    static void all(int n, std::atomic<int>& missing) {
      if (n > 1) {
        fork2join([&, n] { all(n / 2, missing); }, [&, n] { all(n - n / 2, missing); });
      } else {
        --missing;
        yield_until([&] { return missing == 0; });
      }
    }
  };
  for (int round = 0; round < 3; ++round) {
    constexpr int branches = scaled(200, 50);
    std::atomic<int> missing{branches};
    rt.run([&] { meet::all(branches, missing); });
    EXPECT_EQ(missing, 0);
  }
}

// More of them than the deque has room for.
TEST_P(yielding, lets_the_children_of_a_scope_begin) {
  constexpr int children = scaled(20'000, 2'000);
  rt.run([] {
    std::atomic<int> ran{0};
    task_scope scope;
    for (int i = 0; i < children; ++i) scope.spawn([&] { ++ran; });
    yield_until([&] { return ran == children; });
    scope.sync();
  });
}

TEST_P(yielding, lets_tokens_begin) {
  constexpr int tokens = scaled(20'000, 2'000);
  rt.run([] {
    std::atomic<int> ran{0};
    completion done(tokens);
    for (int i = 0; i < tokens; ++i) token<counted>(&ran, done.sptr());
    yield_until([&] { return ran == tokens; });
    done.wait();
  });
}

TEST_P(yielding, lets_fibers_begin) {
  rt.run([] {
    std::atomic<int> ran{0};
    constexpr int frames = 100;
    completion done(frames);
    for (int i = 0; i < frames; ++i) token<enabled_together>(&ran, done.sptr());
    yield_until([&] { return ran == 3 * frames; });
    done.wait();
  });
}

// Others are always ready, and none of them has anything to do with it.
TEST_P(yielding, lets_a_branch_begin_behind_many_threads_that_yield) {
  rt.run([] {
    std::atomic<bool> begun{false};
    std::vector<thread> others;
    for (int i = 0; i < 50; ++i)
      others.emplace_back([&] { yield_until([&] { return begun.load(); }); });
    fork2join([&] { yield_until([&] { return begun.load(); }); }, [&] { begun = true; });
    for (thread& t : others) t.join();
  });
}

// Each branch that begins out of its turn has a stack of its own: where leaves let others run and
// wait for nobody, few do.
TEST_P(yielding, takes_few_stacks_where_nobody_waits) {
  constexpr int depth = scaled(15, 10);
  EXPECT_EQ(rt.run([] { return yielding_tree(depth); }), 1 << depth);
  EXPECT_LE(rt.stats().stacks_max, 500U * GetParam());
}

INSTANTIATE_TEST_SUITE_P(workers, yielding, testing::Values(1U, 2U, 4U));

INSTANTIATE_TEST_SUITE_P(threads, woken_from_outside, testing::Values(1, 2, 10));

INSTANTIATE_TEST_SUITE_P(workers, fairness, testing::Values(1U, 2U, 4U));

}  // namespace
}  // namespace strata::test
