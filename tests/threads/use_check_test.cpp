// SPDX-License-Identifier: Apache-2.0
// Where the standard says "undefined", a build with checks says what was wrong, and ends.
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "../common/thread_states.hpp"
#include "../sched/support.hpp"
#include "strata/fiber.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

class use_check_death : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (!detail::uses_are_checked) GTEST_SKIP() << "this build does not check";
  }
};

// Runs f as a thread with a name.
template <class F>
void in_a_thread(F f) {
  runtime rt(with_workers(2));
  rt.run([&] { thread({.name = "culprit"}, f).join(); });
}

// An object whose end the compiler does not see coming.
template <class T, class... Args>
std::unique_ptr<T> made(Args&&... args) {
  return std::make_unique<T>(std::forward<Args>(args)...);
}

template <class Mutex>
class lock_use_death : public use_check_death {};
using exclusive_locks = ::testing::Types<mutex, timed_mutex, recursive_mutex, recursive_timed_mutex,
                                         shared_mutex, shared_timed_mutex>;
TYPED_TEST_SUITE(lock_use_death, exclusive_locks);

TYPED_TEST(lock_use_death, unlocking_what_nobody_holds) {
  EXPECT_DEATH(in_a_thread([] {
                 TypeParam m;
                 m.lock();
                 m.unlock();
                 m.unlock();
               }),
               "mutex.* at 0x[0-9a-f]+ is unlocked.*, by thread [0-9]+ \"culprit\": .*unlock");
}

TYPED_TEST(lock_use_death, unlocking_what_another_thread_holds) {
  EXPECT_DEATH(in_a_thread([] {
                 TypeParam m;
                 m.lock();
                 thread({.name = "other"}, [&] { m.unlock(); }).join();
               }),
               "mutex.* is unlocked.*, by thread [0-9]+ \"other\": ");
  EXPECT_DEATH(in_a_thread([] {
                 TypeParam m;
                 m.lock();
                 std::thread([&] { m.unlock(); }).join();
               }),
               "mutex.* is unlocked.*, by an OS thread from outside the runtime: ");
}

TYPED_TEST(lock_use_death, destroying_what_is_held) {
  EXPECT_DEATH(in_a_thread([] {
                 const auto m = made<TypeParam>();
                 m->lock();
               }),
               "mutex at 0x[0-9a-f]+ is destroyed while it is held, by .*\"culprit\": unlock it");
}

TYPED_TEST(lock_use_death, destroying_what_another_waits_for) {
  EXPECT_DEATH(in_a_thread([] {
                 auto m = made<TypeParam>();
                 m->lock();
                 thread waits({.name = "waits"}, [&m = *m] { m.lock(); });
                 (void)text_when("waits", "waiting for ");
                 m.reset();
               }),
               "mutex at 0x[0-9a-f]+ is destroyed while ");
}

// As those who have it may: nothing is told of what is in order.
TYPED_TEST(lock_use_death, the_last_to_hold_it_may_end_it) {
  runtime rt(with_workers(4));
  rt.run([] {
    for (int round = 0; round < 500; ++round) {
      auto m = made<TypeParam>();
      std::atomic<int> users{3};
      const auto use = [&] {
        m->lock();
        const bool last = --users == 0;
        m->unlock();
        if (last) m.reset();
      };
      thread a(use), b(use), c(use);
      a.join();
      b.join();
      c.join();
      ASSERT_EQ(m, nullptr);
    }
  });
}

TEST_F(use_check_death, unlocking_a_shared_mutex_that_nobody_reads) {
  EXPECT_DEATH(in_a_thread([] {
                 shared_mutex m;
                 m.unlock_shared();
               }),
               "shared mutex \\(to read\\) at 0x.* is unlocked, which nobody holds");
}

TEST_F(use_check_death, destroying_a_shared_mutex_that_is_read) {
  EXPECT_DEATH(in_a_thread([] {
                 const auto m = made<shared_mutex>();
                 m->lock_shared();
               }),
               "shared mutex at 0x.* is destroyed while it is held");
}

TEST_F(use_check_death, waiting_for_a_condition_without_its_lock) {
  EXPECT_DEATH(in_a_thread([] {
                 mutex m;
                 condition_variable c;
                 std::unique_lock lock(m, std::defer_lock);
                 c.wait(lock);
               }),
               "condition variable at 0x.* is waited for without a lock");
  EXPECT_DEATH(in_a_thread([] {
                 mutex m;
                 condition_variable c;
                 m.lock();
                 thread([&] {
                   std::unique_lock lock(m, std::adopt_lock);
                   c.wait(lock);
                 }).join();
               }),
               "mutex at 0x.* is unlocked, which another thread holds");
}

TEST_F(use_check_death, a_wait_that_times_out_leaves_the_lock_with_its_owner) {
  in_a_thread([] {
    mutex m;
    condition_variable c;
    std::unique_lock lock(m);
    c.wait_for(lock, std::chrono::microseconds(1));
    lock.unlock();
    lock.lock();
  });
}

template <class Condition>
class condition_use_death : public use_check_death {};
using condition_variables = ::testing::Types<condition_variable, condition_variable_any>;
TYPED_TEST_SUITE(condition_use_death, condition_variables);

TYPED_TEST(condition_use_death, destroying_what_is_awaited) {
  EXPECT_DEATH(in_a_thread([] {
                 mutex m;
                 auto c = made<TypeParam>();
                 thread waits({.name = "waits"}, [&m, &c = *c] {
                   std::unique_lock lock(m);
                   c.wait(lock);
                 });
                 (void)text_when("waits", "waiting for ");
                 c.reset();
               }),
               "condition variable at 0x.* is destroyed while somebody waits for it");
}

// Those whom it has notified may still be about to lock the mutex again.
TYPED_TEST(condition_use_death, it_may_end_once_all_are_notified) {
  runtime rt(with_workers(2));
  rt.run([] {
    mutex m;
    auto c = made<TypeParam>();
    std::array<thread, 5> all;
    bool go = false;
    int waiting = 0;
    for (thread& t : all) {
      t = thread([&, &c = *c] {
        std::unique_lock lock(m);
        ++waiting;
        while (!go) c.wait(lock);
      });
    }
    std::unique_lock lock(m);
    while (waiting != 5) {
      lock.unlock();
      this_thread::yield();
      lock.lock();
    }
    go = true;
    c->notify_all();
    c.reset();
    lock.unlock();
    for (thread& t : all) t.join();
  });
}

TEST_F(use_check_death, semaphores_out_of_bounds) {
  EXPECT_DEATH(in_a_thread([] { [[maybe_unused]] const counting_semaphore<3> s(4); }),
               "semaphore at 0x.* begins with a count out of range");
  EXPECT_DEATH(in_a_thread([] { [[maybe_unused]] const counting_semaphore<> s(-1); }),
               "semaphore at 0x.* begins with a count out of range");
  EXPECT_DEATH(in_a_thread([] {
                 binary_semaphore s(1);
                 s.release();
               }),
               "semaphore at 0x.* is released beyond its max");
  EXPECT_DEATH(in_a_thread([] {
                 counting_semaphore<> s(1);
                 s.release(-1);
               }),
               "semaphore at 0x.* is released a negative number of times");
}

TEST_F(use_check_death, destroying_a_semaphore_that_is_awaited) {
  EXPECT_DEATH(in_a_thread([] {
                 auto s = made<counting_semaphore<>>(0);
                 thread waits({.name = "waits"}, [&s = *s] { s.acquire(); });
                 (void)text_when("waits", "waiting for ");
                 s.reset();
               }),
               "semaphore at 0x.* is destroyed while somebody waits for it");
}

TEST_F(use_check_death, latches_out_of_bounds) {
  EXPECT_DEATH(in_a_thread([] { [[maybe_unused]] const latch l(-1); }),
               "latch at 0x.* begins with a count below 0");
  EXPECT_DEATH(in_a_thread([] {
                 latch l(1);
                 l.count_down();
                 l.count_down();
               }),
               "latch at 0x.* is counted down below 0");
}

TEST_F(use_check_death, destroying_a_latch_that_is_awaited) {
  EXPECT_DEATH(in_a_thread([] {
                 auto l = made<latch>(1);
                 thread waits({.name = "waits"}, [&l = *l] { l.wait(); });
                 (void)text_when("waits", "waiting for ");
                 l.reset();
               }),
               "latch at 0x.* is destroyed while somebody waits for it");
}

TEST_F(use_check_death, more_arrive_at_a_barrier_than_it_is_for) {
  EXPECT_DEATH(in_a_thread([] {
                 barrier<> b(2);
                 (void)b.arrive(3);
               }),
               "barrier at 0x.* has more arrivals than its phase expects");
  EXPECT_DEATH(in_a_thread([] {
                 barrier<> b(1);
                 b.arrive_and_drop();
                 b.arrive_and_wait();
               }),
               "barrier at 0x.* has more arrivals than its phase expects");
}

TEST_F(use_check_death, destroying_a_barrier_that_is_awaited) {
  EXPECT_DEATH(in_a_thread([] {
                 auto b = made<barrier<>>(2);
                 thread waits({.name = "waits"}, [&b = *b] { b.arrive_and_wait(); });
                 (void)text_when("waits", "waiting for ");
                 b.reset();
               }),
               "barrier at 0x.* is destroyed while somebody waits for it");
}

struct unlocks_in_a_fiber : threaded {
  mutex* m;
  void start() {
    m->unlock();
    terminate();
  }
};

TEST_F(use_check_death, a_fiber_that_unlocks_is_named) {
  EXPECT_DEATH(in_a_thread([] {
                 mutex m;
                 m.lock();
                 token<unlocks_in_a_fiber>(&m);
                 for (;;) this_thread::yield();
               }),
               "mutex at 0x.* is unlocked, which another thread holds, by fiber \".*\": ");
}

}  // namespace
}  // namespace strata::test
