// SPDX-License-Identifier: Apache-2.0
// Semaphores let in as many as they count, latches open once, barriers hold until all are there.
#include "strata/semaphore.hpp"

#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include "../sched/support.hpp"
#include "strata/fiber.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

TEST(semaphore, no_more_than_it_counts) {
  for (const unsigned workers : {1U, 2U, 8U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      counting_semaphore<3> s(3);
      std::atomic<int> inside{0}, wrong{0};
      std::vector<thread> threads;
      for (int i = 0; i < 20; ++i) {
        threads.emplace_back([&, i] {
          for (int k = 0; k < scaled(200, 50); ++k) {
            if ((i + k) % 5 == 0) {
              if (!s.try_acquire_for(std::chrono::microseconds(k))) continue;
            } else {
              s.acquire();
            }
            if (++inside > 3) ++wrong;
            if (k % 4 == 0) this_thread::yield();
            --inside;
            s.release();
          }
        });
      }
      for (thread& t : threads) t.join();
      EXPECT_EQ(wrong, 0);
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(s.try_acquire());
      EXPECT_FALSE(s.try_acquire());
      static_assert(counting_semaphore<3>::max() >= 3);
    });
  }
}

TEST(semaphore, several_at_once_and_timeouts) {
  runtime rt(with_workers(2));
  rt.run([] {
    counting_semaphore<> s(0);
    std::atomic<int> through{0};
    std::vector<thread> threads;
    for (int i = 0; i < 10; ++i) {
      threads.emplace_back([&] {
        s.acquire();
        ++through;
      });
    }
    s.release(10);
    for (thread& t : threads) t.join();
    EXPECT_EQ(through, 10);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_FALSE(s.try_acquire_for(2ms));
    EXPECT_GE(std::chrono::steady_clock::now() - began, 2ms);
    EXPECT_FALSE(s.try_acquire_until(std::chrono::system_clock::now() - 1s));
    s.release(0);
    EXPECT_FALSE(s.try_acquire());
  });
}

// Whoever gets through may end the semaphore while release() is on its way out.
TEST(semaphore, may_be_destroyed_by_whoever_gets_through) {
  runtime rt(with_workers(4));
  rt.run([] {
    for (int i = 0; i < scaled(5000, 500); ++i) {
      auto s = std::make_unique<binary_semaphore>(0);
      thread t([p = s.get()] { p->release(); });
      s->acquire();
      s.reset();
      t.join();
    }
  });
}

struct releases : threaded {
  counting_semaphore<>* s;
  slot_ptr done;
  void start() {
    s->release();
    sync(done);
    terminate();
  }
};

TEST(semaphore, released_by_fibers_and_from_outside) {
  runtime rt(with_workers(2));
  counting_semaphore<> s(0);
  std::thread outside([&] {
    for (int i = 0; i < 200; ++i) s.release();
  });
  rt.run([&] {
    std::vector<thread> threads;
    for (int i = 0; i < 40; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 10; ++k) s.acquire();
      });
    }
    completion done(200);
    for (int i = 0; i < 200; ++i) token<releases>(&s, done.sptr());
    done.wait();
    for (thread& t : threads) t.join();
    EXPECT_FALSE(s.try_acquire());
  });
  outside.join();
}

TEST(latch, opens_when_all_have_counted) {
  for (const unsigned workers : {1U, 4U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      latch l(20);
      EXPECT_FALSE(l.try_wait());
      std::atomic<int> before{0};
      std::vector<thread> threads;
      for (int i = 0; i < 10; ++i) {
        threads.emplace_back([&] {
          ++before;
          l.arrive_and_wait();
          EXPECT_EQ(before, 10);
        });
      }
      l.count_down(10);
      l.wait();
      EXPECT_EQ(before, 10);
      for (thread& t : threads) t.join();
      EXPECT_TRUE(l.try_wait());
      latch open(0);
      open.wait();
    });
  }
}

TEST(latch, waited_for_from_outside) {
  runtime rt(with_workers(1));
  latch l(2);
  std::atomic<int> seen{0};
  std::thread outside([&] {
    l.wait();
    ++seen;
  });
  rt.run([&] {
    thread a([&] { l.count_down(); });
    thread b([&] { l.count_down(); });
    a.join();
    b.join();
  });
  outside.join();
  EXPECT_EQ(seen, 1);
}

TEST(barrier, nobody_is_a_phase_ahead) {
  for (const unsigned workers : {1U, 2U, 4U, 8U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      constexpr int parties = 32;
      constexpr int phases = scaled(100, 20);
      int completed = 0;
      std::atomic<int> arrived{0}, wrong{0};
      barrier b(parties, [&]() noexcept {
        ++completed;
        if (arrived.load() != completed * parties) ++wrong;
      });
      std::vector<thread> threads;
      for (int i = 0; i < parties; ++i) {
        threads.emplace_back([&, i] {
          for (int p = 0; p < phases; ++p) {
            ++arrived;
            if ((i + p) % 7 == 0) this_thread::yield();
            b.arrive_and_wait();
            if (completed < p + 1 || completed > p + 2) ++wrong;
          }
        });
      }
      for (thread& t : threads) t.join();
      EXPECT_EQ(completed, phases);
      EXPECT_EQ(wrong, 0);
    });
  }
}

TEST(barrier, tokens_and_drops) {
  runtime rt(with_workers(2));
  rt.run([] {
    std::atomic<int> completed{0};
    barrier b(4, [&]() noexcept { ++completed; });
    auto first = b.arrive(2);
    thread t([&] { b.arrive_and_drop(); });
    t.join();
    EXPECT_EQ(completed, 0);
    auto last = b.arrive();
    b.wait(std::move(first));
    b.wait(std::move(last));
    EXPECT_EQ(completed, 1);
    // One less from now on.
    thread u([&] { b.arrive_and_wait(); });
    thread v([&] { b.arrive_and_wait(); });
    b.arrive_and_wait();
    u.join();
    v.join();
    EXPECT_EQ(completed, 2);
    b.arrive_and_drop();
    b.arrive_and_drop();
    b.arrive_and_wait();  // alone
    EXPECT_EQ(completed, 3);
    EXPECT_THROW(barrier<>(-1), std::system_error);
  });
}

TEST(barrier, threads_of_both_kinds) {
  runtime rt(with_workers(2));
  std::atomic<int> arrived{0}, wrong{0};
  barrier b(6);
  constexpr int phases = scaled(200, 40);
  const auto take_part = [&] {
    for (int p = 1; p <= phases; ++p) {
      ++arrived;
      b.arrive_and_wait();
      if (arrived < 6 * p) ++wrong;
    }
  };
  std::vector<std::thread> outside;
  for (int i = 0; i < 2; ++i) outside.emplace_back(take_part);
  rt.run([&] {
    std::vector<thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(take_part);
    for (thread& t : threads) t.join();
  });
  for (std::thread& t : outside) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace strata::test
