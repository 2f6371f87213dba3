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

// What threads do to each other at random, an operation each; and what holds when all have ended.
class storm_of_threads {
 public:
  void do_one(prng& random) {
    switch (random.below(8)) {
      case 0:
        return change_and_tell();
      case 1:
        return await_change(random);
      case 2:
        return nest(random);
      case 3:
        return write();
      case 4:
        return read();
      case 5:
        return acquire();
      case 6:
        return begin_child(random);
      default:
        EXPECT_EQ(fib(5), 5);
    }
  }

  void expect_all_let_go() {
    EXPECT_EQ(counter_, in_mutex_);
    EXPECT_EQ(shared_value_, writes_);
    EXPECT_TRUE(two_.try_acquire());
    EXPECT_TRUE(two_.try_acquire());
    EXPECT_FALSE(two_.try_acquire());
    EXPECT_TRUE(mutex_.try_lock());
    mutex_.unlock();
  }

 private:
  void change_and_tell() {
    const std::lock_guard lock(mutex_);
    count();
    changed_.notify_one();
  }
  void await_change(prng& random) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::microseconds(random.below(100)));
    count();
  }
  void nest(prng& random) {
    const std::unique_lock lock(recursive_, std::chrono::microseconds(random.below(50)));
    if (!lock.owns_lock()) return;
    const std::lock_guard again(recursive_);
    ++nested_;
  }
  void write() {
    const std::lock_guard lock(shared_);
    ++shared_value_;
    ++writes_;
  }
  void read() {
    const std::shared_lock lock(shared_);
    EXPECT_EQ(shared_value_, writes_);
    this_thread::yield();
    EXPECT_EQ(shared_value_, writes_);
  }
  void acquire() {
    two_.acquire();
    this_thread::yield();
    two_.release();
  }
  void begin_child(prng& random) {
    thread child([this] {
      const std::lock_guard lock(mutex_);
      count();
    });
    if (random.below(2) == 0) this_thread::yield();
    child.join();
  }
  void count() {  // in mutex_
    ++counter_;
    ++in_mutex_;
  }

  mutex mutex_;
  recursive_timed_mutex recursive_;
  shared_mutex shared_;
  condition_variable changed_;
  counting_semaphore<> two_{2};
  long counter_ = 0, nested_ = 0, shared_value_ = 0;
  std::atomic<long> in_mutex_{0}, writes_{0};
};

// Everything at random: invariants hold, everybody ends.
TEST_P(mixed_on, storm) {
  const std::uint64_t first = seed();
  rt.run([&] {
    storm_of_threads all;
    std::vector<thread> threads;
    for (std::uint64_t i = 0; i < 16; ++i) {
      threads.emplace_back([&, i] {
        prng random(first + i);
        for (int k = 0; k < scaled(200, 60); ++k) all.do_one(random);
      });
    }
    for (thread& t : threads) t.join();
    all.expect_all_let_go();
  });
}

}  // namespace
}  // namespace strata::test
