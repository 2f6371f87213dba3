// SPDX-License-Identifier: Apache-2.0
// More tasks than stacks: who asks for one too many is told, all others get theirs.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <latch>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "../common/yielding_tree.hpp"
#include "context/stack_pool.hpp"
#include "few_stacks.hpp"
#include "sched/scheduler.hpp"
#include "strata/fiber.hpp"
#include "strata/semaphore.hpp"
#include "strata/task_scope.hpp"
#include "strata/thread.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

TEST(stack_pool, keeps_some_for_who_must_not_fail) {
  constexpr std::size_t kept = 3;
  detail::stack_pool pool(std::size_t{1} << 30, [](void*) {});
  pool.keep(kept);
  ASSERT_GT(pool.capacity(), kept);
  std::vector<detail::stack*> taken;
  for (std::size_t i = 0; i < pool.capacity() - kept; ++i) taken.push_back(pool.take());
  EXPECT_EQ(pool.left(), kept);
  EXPECT_THROW((void)pool.take(), error);
  EXPECT_EQ(pool.take_ready(), nullptr);
  for (std::size_t i = 0; i < kept; ++i) {
    taken.push_back(pool.take_kept());
    EXPECT_NE(taken.back(), nullptr);
  }
  EXPECT_EQ(pool.take_kept(), nullptr);
  pool.give(taken[0]);
  EXPECT_THROW((void)pool.take(), error) << "it is one of the kept ones";
  for (std::size_t i = 1; i <= kept; ++i) pool.give(taken[i]);
  EXPECT_NE(pool.take(), nullptr);
  EXPECT_THROW((void)pool.take(), error);
}

TEST(stack_pool, keeps_them_whoever_is_faster) {
  constexpr std::size_t kept = 5;
  constexpr int takers = 4;
  for (int round = 0; round < scaled(20, 3); ++round) {
    detail::stack_pool pool(std::size_t{1} << 28, [](void*) {});
    pool.keep(kept);
    std::latch all_came(takers);
    std::atomic<std::size_t> taken{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < takers; ++i) {
        threads.emplace_back([&] {
          all_came.arrive_and_wait();
          try {
            for (;; ++taken) (void)pool.take();
          } catch (const error&) {
            // That was the last one.
          }
        });
      }
    }
    EXPECT_EQ(taken, pool.capacity() - kept);
    EXPECT_EQ(pool.left(), kept);
  }
}

class few_stacks : public ::testing::TestWithParam<unsigned> {
 protected:
  static options settings() { return with_large_stacks(GetParam()); }
};

// Each holds a stack until all have come.
TEST_P(few_stacks, are_more_where_tasks_have_come_already) {
  runtime rt(settings());
  constexpr int tasks = 300;
  rt.run([&] {
    latch all_came(tasks);
    task_scope scope;
    for (int i = 0; i < tasks; ++i) scope.spawn([&] { all_came.arrive_and_wait(); });
    scope.sync();
  });
  EXPECT_GE(rt.stats().stacks_max, std::size_t{tasks});
}

TEST_P(few_stacks, are_given_to_threads_until_they_are_refused) {
  runtime rt(settings());
  for (int round = 0; round < 3; ++round) {
    rt.run([&] {
      std::vector<thread> threads;
      counting_semaphore<> go(0);
      try {
        for (;;) threads.emplace_back([&] { go.acquire(); });
      } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::make_error_code(std::errc::resource_unavailable_try_again));
      }
      // However many workers there are.
      EXPECT_GE(threads.size(), detail::this_worker().owner->stacks.capacity() / 2);
      // What needs no thread goes on: tasks that wait, too.
      latch all_came(100);
      task_scope scope;
      for (int i = 0; i < 100; ++i) scope.spawn([&] { all_came.arrive_and_wait(); });
      scope.sync();
      go.release(static_cast<std::ptrdiff_t>(threads.size()));
      for (thread& t : threads) t.join();
    });
  }
}

// Those are of other pools.
TEST_P(few_stacks, are_not_counted_for_threads_with_a_size_of_their_own) {
  runtime rt(settings());
  rt.run([] {
    const std::size_t all = detail::this_worker().owner->stacks.capacity();
    thread_attributes small;
    small.stack_bytes = 64 * 1024;
    std::vector<thread> threads;
    latch go(1);
    for (std::size_t i = 0; i < all; ++i) threads.emplace_back(small, [&] { go.wait(); });
    for (std::size_t i = 0; i < all / 2; ++i) threads.emplace_back([&] { go.wait(); });
    go.count_down();
    for (thread& t : threads) t.join();
    // Nor are they afterwards.
    threads.clear();
    latch again(1);
    EXPECT_THROW(
        {
          for (;;) threads.emplace_back([&] { again.wait(); });
        },
        std::system_error);
    EXPECT_GE(threads.size(), all / 2);
    EXPECT_LE(threads.size(), all) << "some have ended twice";
    again.count_down();
    for (thread& t : threads) t.join();
  });
}

TEST_P(few_stacks, of_a_size_of_their_own_are_had_where_all_others_are_used_up) {
  runtime rt(settings());
  rt.run([] {
    std::vector<thread> threads;
    latch go(1);
    const auto one_more = [&] { threads.emplace_back([&] { go.wait(); }); };
    EXPECT_THROW(
        {
          for (;;) one_more();
        },
        std::system_error);
    thread_attributes small;
    small.stack_bytes = 64 * 1024;
    for (int i = 0; i < 10; ++i) threads.emplace_back(small, [&] { go.wait(); });
    EXPECT_THROW(one_more(), std::system_error);
    go.count_down();
    for (thread& t : threads) t.join();
  });
}

TEST_P(few_stacks, are_enough_for_forks_that_let_others_run) {
  runtime rt(settings());
  for (int round = 0; round < scaled(20, 2); ++round)
    EXPECT_EQ(rt.run([] { return yielding_tree(11); }), 2048);
}

// ThreadSanitizer needs the addresses.
#if !defined(STRATA_TSAN)

TEST_P(few_stacks, are_waited_for_where_there_are_no_more) {
  const auto program = [] {
    runtime rt(settings());
    refuse_address_space();
    bool right = true;
    for (int round = 0; round < 20; ++round)
      right = right && rt.run([] { return yielding_tree(11); }) == 2048;
    // At most as many as there are stacks, each of which the next one waits for.
    rt.run([&] {
      constexpr int tasks = 300, at_once = 10;
      counting_semaphore<> turns(at_once);
      std::atomic<int> ran{0};
      task_scope scope;
      for (int i = 0; i < tasks; ++i) {
        scope.spawn([&] {
          turns.acquire();
          for (int k = 0; k < 3; ++k) this_thread::yield();
          ++ran;
          turns.release();
        });
      }
      scope.sync();
      right = right && ran == tasks;
    });
    std::_Exit(say(right));
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "right");
}

// How many the system allows a process; 0 where it does not say.
std::size_t mappings_max() {
  std::size_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  return most;
}

// From now on the system gives this process none. False: it still does.
bool refuse_mappings() {
  const std::size_t most = mappings_max();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const range =
      mmap(nullptr, 2 * most * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return false;
  // Neighbours with different rights are mappings of their own.
  for (std::size_t i = 0; i < 2 * most; i += 2) {
    if (mprotect(static_cast<std::byte*>(range) + i * page, page, PROT_READ) != 0)
      return errno == ENOMEM;
  }
  return false;
}

// Where guard pages need them, stacks have none then.
TEST(stacks, are_had_where_there_are_no_more_mappings) {
  const std::size_t most = mappings_max();
  if (most == 0 || most > 300'000)
    GTEST_SKIP() << "vm.max_map_count is more than can be used up here: " << most;
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto program = [] {
    runtime rt(with_workers(2));
    bool right = refuse_mappings();
    std::size_t made = 0;
    std::atomic<std::size_t> ran{0};
    rt.run([&] {
      std::vector<thread> threads;
      threads.reserve(5'000);
      latch go(1);
      try {
        while (made < 5'000) {
          threads.emplace_back([&] {
            go.wait();
            ++ran;
          });
          ++made;
        }
      } catch (const std::system_error&) {
      }
      go.count_down();
      for (thread& t : threads) t.join();
    });
    right = right && made >= 100 && ran == made;
    std::_Exit(say(right));
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "right");
}

// A fork at the end of its stack needs another one.
long deeper(std::uint64_t depth) {
  volatile char frame[1 << 16];
  frame[0] = static_cast<char>(depth);
  const auto [a, b] = fork2join([=] { return deeper(depth + 1); }, [] { return 1L; });
  return a + b + frame[0];
}

TEST_P(few_stacks, are_refused_to_who_forks_without_end) {
  const auto program = [] {
    options o = settings();
    o.stack_bytes = std::size_t{1} << 20;
    // Workers need a stack of the system's each, and malloc would take 64 MiB for each of them,
    // too.
    mallopt(M_ARENA_MAX, 1);
    refuse_address_space(std::size_t{1} << 29);  // so few stacks fit
    runtime rt(o);
    bool right = true;
    for (int round = 0; round < 3; ++round) {
      try {
        rt.run([] { return deeper(0); });
        right = false;
      } catch (const std::system_error& e) {
        right = right &&
                e.code() == std::make_error_code(std::errc::resource_unavailable_try_again) &&
                std::string(e.what()).find("fork less deeply") != std::string::npos;
      }
      right = right && rt.run([] { return yielding_tree(8); }) == 256;
    }
    std::_Exit(say(right));
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "right");
}

// Those that are waited for may come back to another pool than the usual one.
TEST(stacks, are_noticed_wherever_they_come_back) {
  const auto program = [] {
    const options o = with_large_stacks(1);
    runtime rt(o);
    counting_semaphore<> go(0);
    std::atomic<detail::scheduler*> workers{nullptr};
    // No worker: once all stacks are in use and one more is waited for, one of the other pool comes
    // back.
    std::thread watches([&] {
      spin_until([&] { return workers != nullptr && workers.load()->out_of_stacks != 0; });
      go.release();
    });
    refuse_address_space(o.stack_bytes + o.stack_bytes / 2);  // another pool, of one stack
    std::ptrdiff_t further = 0;
    std::size_t pools = 0;
    rt.run([&] {
      detail::scheduler& s = *detail::this_worker().owner;
      workers = &s;
      const auto tasks = static_cast<std::ptrdiff_t>(s.stacks.capacity() + 2);
      latch all_came(tasks);
      task_scope scope;
      for (std::ptrdiff_t i = 0; i < tasks; ++i) {
        scope.spawn([&] {
          if (detail::calling_stack().pool == &s.stacks) return all_came.arrive_and_wait();
          if (++further == 1) go.acquire();
          pools = s.all_stacks().size();
          all_came.count_down();
        });
      }
      scope.sync();
    });
    watches.join();
    std::_Exit(say(further > 1 && pools == 2));
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "right");
}

// It takes three seconds until that is said.
TEST(stacks, are_asked_for_where_they_may_still_come_back) {
  const auto program = [] {
    runtime rt(with_large_stacks(2));
    counting_semaphore<> go(0);
    constexpr int tasks = 300;
    int ends[2];
    const int errors = dup(STDERR_FILENO);
    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) std::_Exit(3);
    std::atomic<bool> heard{false};
    // No worker: it releases them all when somebody has complained.
    std::thread hears([&] {
      std::string all;
      char c;
      while (!heard && read(ends[0], &c, 1) == 1) {
        all += c;
        heard = all.find("strata: out of stacks: ") != std::string::npos && c == '\n';
      }
      go.release(tasks);
    });
    refuse_address_space();
    std::atomic<int> released{0};
    rt.run([&] {
      task_scope scope;
      for (int i = 0; i < tasks; ++i) {
        // Its time may come, so that the program is not ended.
        scope.spawn([&] { released += go.try_acquire_for(std::chrono::hours(24)) ? 1 : 0; });
      }
      scope.sync();
    });
    hears.join();
    dup2(errors, STDERR_FILENO);
    std::_Exit(say(heard && released == tasks));
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "right");
}

// It takes three seconds until that is clear.
TEST(stacks, end_the_program_where_nothing_can_go_on) {
  const auto program = [] {
    runtime rt(with_large_stacks(2));
    refuse_address_space();
    rt.run([] {
      constexpr int tasks = 300;
      latch all_came(tasks);
      task_scope scope;
      for (int i = 0; i < tasks; ++i) scope.spawn([&] { all_came.arrive_and_wait(); });
      scope.sync();
    });
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(1), "strata: out of stacks: ");
}

#endif

INSTANTIATE_TEST_SUITE_P(workers, few_stacks, testing::Values(1U, 2U, 4U, 16U));

}  // namespace
}  // namespace strata::test
