// SPDX-License-Identifier: Apache-2.0
// Each worker has a value of its own, which it has for itself as long as it uses it.
#include "strata/per_worker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../common/fib_forks.hpp"
#include "strata/blocking.hpp"
#include "strata/fiber.hpp"
#include "strata/parallel.hpp"
#include "strata/semaphore.hpp"
#include "strata/task_scope.hpp"
#include "strata/thread.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

// Not atomic: whoever shares one without order is seen by ThreadSanitizer, and miscounts elsewhere.
struct tally {
  long sum = 0;
  bool in_use = false;

  void add(long n) {
    EXPECT_FALSE(in_use);
    in_use = true;
    sum += n;
    in_use = false;
  }
};

long sum_of(per_worker<tally>& all) {
  return all.combine(0L, [](long sum, const tally& one) { return sum + one.sum; });
}
std::size_t count_of(per_worker<tally>& all) {
  std::size_t n = 0;
  all.for_each([&](tally&) { ++n; });
  return n;
}

class per_worker_workers : public leaves_no_frame {};
INSTANTIATE_TEST_SUITE_P(workers, per_worker_workers, ::testing::Values(1, 2, 4, 8),
                         ::testing::PrintToStringParamName());

TEST(per_worker, lies_where_its_type_wants_to_be) {
  struct alignas(128) line {
    char bytes[128];
  };
  static_assert(alignof(line) > 64);
  per_worker<line> lines;
  EXPECT_EQ(
      lines.use([](line& mine) { return reinterpret_cast<std::uintptr_t>(&mine) % alignof(line); }),
      0U);
}

TEST_P(per_worker_workers, add_without_losing_anything) {
  per_worker<tally> all;
  constexpr long n = scaled(100'000L, 5'000L);
  rt.run([&] { parallel_for(0L, n, [&](long i) { all.use([i](tally& mine) { mine.add(i); }); }); });
  EXPECT_EQ(sum_of(all), n * (n - 1) / 2);
  EXPECT_LE(count_of(all), GetParam());
  // Nothing moves: it goes on from there.
  rt.run([&] {
    task_scope scope;
    for (int i = 0; i < 100; ++i) {
      scope.spawn([&] {
        fib(8);
        all.use([](tally& mine) { mine.add(1); });
        fib(8);
      });
    }
    scope.sync();
  });
  EXPECT_EQ(sum_of(all), n * (n - 1) / 2 + 100);
  EXPECT_LE(count_of(all), GetParam());
}

TEST_P(per_worker_workers, are_gone_through_as_other_ranges_are) {
  static_assert(std::ranges::forward_range<per_worker<long>>);
  per_worker<long> all;
  EXPECT_EQ(all.begin(), all.end());
  EXPECT_EQ(rt.run([&] { return parallel_reduce(all, 7L, std::identity(), std::plus<>()); }), 7);
  std::atomic<long> begun{0};
  rt.run([&] {
    // Each worker has one: none goes on before all have.
    std::barrier<> all_have_one(static_cast<std::ptrdiff_t>(GetParam()));
    std::vector<thread> threads;
    for (unsigned i = 0; i < GetParam(); ++i) {
      threads.emplace_back([&] {
        all.use([&](long& mine) {
          mine = ++begun;
          all_have_one.arrive_and_wait();
        });
      });
    }
    for (thread& t : threads) t.join();
  });
  const long n = GetParam(), sum = n * (n + 1) / 2;
  EXPECT_EQ(std::distance(all.begin(), all.end()), n);
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0L), sum);
  rt.run([&] {
    parallel_for_each(
        all, [](long& one) { one *= 10; }, grain{1});
    EXPECT_EQ(parallel_reduce(all, 0L, std::identity(), std::plus<>(), grain{1}), 10 * sum);
  });
  auto second = all.begin();
  const auto first = second++;
  EXPECT_EQ(first, all.begin());
  EXPECT_EQ(second, std::next(first));
  EXPECT_EQ(&*first, first.operator->());
}

TEST_P(per_worker_workers, are_joined_without_losing_anything) {
  per_worker<std::vector<int>> all;
  constexpr int n = scaled(20'000, 2'000);
  const auto join = [](std::vector<int> a, std::vector<int> b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  std::vector<int> joined = rt.run([&] {
    parallel_for(0, n, [&](int i) { all.use([i](std::vector<int>& mine) { mine.push_back(i); }); });
    return parallel_reduce(
        all, std::vector<int>(), [](std::vector<int>& one) { return std::move(one); }, join);
  });
  std::sort(joined.begin(), joined.end());
  ASSERT_EQ(joined.size(), static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) EXPECT_EQ(joined[static_cast<std::size_t>(i)], i);
}

TEST_P(per_worker_workers, have_cache_lines_of_their_own) {
  per_worker<char> all;
  rt.run([&] { parallel_for(0, 1000, [&](int) { all.use([](char& mine) { mine = 'x'; }); }); });
  all.for_each([](char& one) { EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&one) % 64, 0U); });
}

TEST_P(per_worker_workers, are_used_by_fibers_and_threads) {
  struct adds : threaded {
    per_worker<tally>* all;
    slot_ptr done;
    void start() {
      all->use([](tally& mine) { mine.add(1); });
      sync(done);
      terminate();
    }
  };
  per_worker<tally> all;
  rt.run([&] {
    completion done(100);
    for (int i = 0; i < 100; ++i) token<adds>(&all, done.sptr());
    std::vector<thread> threads;
    for (int i = 0; i < 100; ++i) {
      threads.emplace_back([&] {
        all.use([](tally& mine) { mine.add(1); });
        this_thread::yield();
        all.use([](tally& mine) { mine.add(1); });
      });
    }
    for (thread& t : threads) t.join();
    done.wait();
  });
  EXPECT_EQ(sum_of(all), 300);
}

class per_worker_use : public ::testing::Test {
 protected:
  runtime rt{with_workers(2)};
  per_worker<tally> all;
};

TEST_F(per_worker_use, returns_what_the_function_returns) {
  rt.run([&] {
    EXPECT_EQ(all.use([](tally& mine) { return ++mine.sum; }), 1);
    static_assert(std::is_void_v<decltype(all.use([](tally&) {}))>);
    EXPECT_EQ(*all.use([](tally&) { return std::make_unique<int>(7); }), 7);
  });
}

// What must not be done is refused, and the worker is as good as new afterwards.
TEST_F(per_worker_use, must_not_fork_or_wait) {
  counting_semaphore<> none(0);
  const std::vector<std::function<void()>> forbidden{
      [] { fork2join([] {}, [] {}); },
      [] { parallel_for(0, 2, [](int) {}); },
      [] {
        task_scope scope;
        scope.spawn([] {});
      },
      [&] { none.acquire(); },
      [] { this_thread::sleep_for(std::chrono::hours(1)); },
      [] { blocking([] {}); },
      [] {
        completion never;
        never.wait();
      },
  };
  rt.run([&] {
    for (std::size_t i = 0; i < forbidden.size(); ++i) {
      try {
        all.use([&](tally&) { forbidden[i](); });
        ADD_FAILURE() << i << " was let through";
      } catch (const misuse_error& e) {
        EXPECT_NE(std::string(e.what()).find("per_worker::use()"), std::string::npos) << e.what();
      }
      EXPECT_EQ(fib(8), 21);
    }
    // Within another use, too, and until the outer one has ended.
    all.use([&](tally&) {
      per_worker<int> other;
      other.use([](int& mine) { mine = 1; });
      EXPECT_THROW(fib(8), misuse_error);
    });
    EXPECT_EQ(fib(8), 21);
  });
}

TEST_F(per_worker_use, of_the_same_object_within_finds_the_same_value) {
  rt.run([&] {
    all.use([&](tally& outer) { all.use([&](tally& inner) { EXPECT_EQ(&inner, &outer); }); });
  });
  EXPECT_EQ(count_of(all), 1U);
}

TEST_F(per_worker_use, does_not_give_way_in_a_yield) {
  runtime alone(with_workers(1));
  alone.run([&] {
    thread other([&] { all.use([](tally& mine) { mine.add(1); }); });
    all.use([](tally& mine) {
      mine.in_use = true;
      for (int i = 0; i < 1000; ++i) this_thread::yield();
      mine.in_use = false;
    });
    other.join();
  });
  EXPECT_EQ(sum_of(all), 1);
}

TEST_F(per_worker_use, lets_exceptions_pass) {
  rt.run([&] {
    EXPECT_THROW(all.use([](tally&) { throw std::out_of_range("from within"); }),
                 std::out_of_range);
    EXPECT_EQ(fib(8), 21);
  });
}

TEST_F(per_worker_use, makes_values_as_it_is_told) {
  std::atomic<int> refused{1};
  per_worker<std::atomic<int>> counts([&] {
    if (refused.fetch_sub(1) > 0) throw std::runtime_error("not yet");
    return std::atomic<int>(40);
  });
  rt.run([&] {
    EXPECT_THROW(counts.use([](std::atomic<int>& mine) { ++mine; }), std::runtime_error);
    EXPECT_EQ(counts.use([](std::atomic<int>& mine) { return mine += 2; }), 42);
  });
  EXPECT_EQ(counts.combine(0, [](int sum, std::atomic<int>& one) { return sum + one; }), 42);
}

TEST_F(per_worker_use, destroys_what_it_has_made) {
  ASSERT_EQ(tracked::living(), 0);
  {
    per_worker<tracked> values;
    rt.run([&] { parallel_for(0, 100, [&](int) { values.use([](tracked&) {}); }); });
    EXPECT_GE(tracked::living(), 1);
    EXPECT_LE(tracked::living(), 2);
  }
  EXPECT_EQ(tracked::living(), 0);
}

// main(), the threads of other libraries, and calls that block.
TEST_F(per_worker_use, outside_a_runtime_is_each_os_threads_own) {
  constexpr int many = 40;
  std::barrier all_here(many + 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < many; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) all.use([](tally& mine) { mine.add(1); });
      all_here.arrive_and_wait();  // nobody has the number of one that has ended
      all.use([](tally& mine) { mine.add(1); });
    });
  }
  all.use([](tally& mine) { mine.add(1); });
  rt.run([&] {
    blocking([&] { all.use([](tally& mine) { mine.add(1); }); });
    all.use([](tally& mine) { mine.add(1); });
  });
  all_here.arrive_and_wait();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(sum_of(all), many * 101 + 3);
  EXPECT_GE(count_of(all), many + 2U);
  const std::size_t before = count_of(all);
  // Those that come later go on with what is there.
  for (int i = 0; i < many; ++i)
    std::thread([&] { all.use([](tally& mine) { mine.add(1); }); }).join();
  EXPECT_LE(count_of(all), before + 1);
  EXPECT_EQ(sum_of(all), many * 102 + 3);
}

// A thread_local that is destroyed after our number.
TEST_F(per_worker_use, at_the_end_of_an_os_thread) {
  struct at_end {
    per_worker<tally>* all = nullptr;
    ~at_end() {
      if (all != nullptr) all->use([](tally& mine) { mine.add(1); });
    }
  };
  const auto use_twice = [&] {
    static thread_local at_end last;
    last.all = &all;
    all.use([](tally& mine) { mine.add(1); });
  };
  constexpr int threads = 20;
  std::thread(use_twice).join();
  const std::size_t before = count_of(all);
  for (int i = 1; i < threads; ++i) std::thread(use_twice).join();
  EXPECT_EQ(sum_of(all), 2 * threads);
  EXPECT_LE(count_of(all), before + 1) << "those that come later go on with what is there";
}

TEST_F(per_worker_use, by_several_runtimes_at_once) {
  constexpr long rounds = scaled(20'000L, 2'000L);
  std::vector<std::thread> outside;
  for (int i = 0; i < 4; ++i) {
    outside.emplace_back([&] {
      runtime mine(with_workers(2));
      mine.run(
          [&] { parallel_for(0L, rounds, [&](long) { all.use([](tally& t) { t.add(1); }); }); });
    });
  }
  rt.run([&] { parallel_for(0L, rounds, [&](long) { all.use([](tally& t) { t.add(1); }); }); });
  for (std::thread& t : outside) t.join();
  EXPECT_EQ(sum_of(all), 5 * rounds);
}

TEST_F(per_worker_use, by_one_runtime_within_another) {
  runtime other(with_workers(2));
  rt.run([&] {
    all.use([&](tally& mine) {
      mine.sum += other.run([&] {
        // A worker of its own, which may fork.
        all.use([](tally& theirs) { theirs.add(1); });
        return fib(8);
      });
    });
  });
  EXPECT_EQ(sum_of(all), 22);
  EXPECT_EQ(count_of(all), 2U);
}

TEST(per_worker_lifetime, is_longer_than_that_of_runtimes) {
  per_worker<tally> all;
  for (int round = 0; round < 20; ++round) {
    runtime rt(with_workers(2));
    rt.run([&] { parallel_for(0, 100, [&](int) { all.use([](tally& t) { t.add(1); }); }); });
  }
  EXPECT_EQ(sum_of(all), 2000);
  // A later worker goes on with what one of before has left.
  EXPECT_LE(count_of(all), 2U);
  all.for_each([](tally& one) { one = {}; });
  EXPECT_EQ(sum_of(all), 0);
}

TEST(per_worker_lifetime, of_one_that_nobody_has_used) {
  per_worker<tally> all;
  EXPECT_EQ(sum_of(all), 0);
  EXPECT_EQ(count_of(all), 0U);
}

}  // namespace
}  // namespace strata::test
