// SPDX-License-Identifier: Apache-2.0
// With options::detect_deadlock a circle of threads that wait for each other's mutexes is named,
// and nothing else is taken for one.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "../common/thread_asleep.hpp"
#include "../common/thread_states.hpp"
#include "../sched/support.hpp"
#include "strata/condition_variable.hpp"
#include "strata/detail/parking.hpp"
#include "strata/detail/word_lock.hpp"
#include "strata/fiber.hpp"
#include "strata/mutex.hpp"
#include "strata/pthread.h"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"
#include "threads/after_fork.hpp"
#include "threads/waiter.hpp"

namespace strata::test {
namespace {

options watching(unsigned workers) {
  options o = with_workers(workers);
  o.detect_deadlock = true;
  return o;
}

class deadlock_death : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(deadlock_death, a_circle_of_three_is_named) {
  EXPECT_EXIT(
      {
        runtime rt(watching(2));
        rt.run([] {
          mutex m[3];
          latch all_hold(3);
          const auto cross = [&](int i) {
            std::lock_guard first(m[i]);
            all_hold.count_down();
            all_hold.wait();
            std::lock_guard second(m[(i + 1) % 3]);
          };
          thread a({.name = "anna"}, cross, 0);
          thread b({.name = "bert"}, cross, 1);
          thread c({.name = "cleo"}, cross, 2);
          a.join();
          b.join();
          c.join();
        });
      },
      ::testing::ExitedWithCode(1),
      "deadlock: 3 threads wait for each other in a circle\n"
      "(  thread [0-9]+ \"(anna|bert|cleo)\" holds the mutex at 0x[0-9a-f]+ and waits for the one "
      "at 0x[0-9a-f]+\n){3}");
}

TEST_F(deadlock_death, one_that_waits_for_itself_is_named) {
  EXPECT_EXIT(
      {
        runtime rt(watching(1));
        rt.run([] {
          thread t({.name = "twice"}, [] {
            mutex m;
            m.lock();
            m.lock();
          });
          t.join();
        });
      },
      ::testing::ExitedWithCode(1), "a thread waits for itself\n.*\"twice\" holds .* it again");
}

// Who waits for a condition can be found before the lock is free that it has given away.
TEST_F(deadlock_death, is_not_of_who_is_woken_before_it_has_unlocked) {
  runtime rt(watching(1));
  rt.run([] {
    struct {
      detail::word_lock lock;
      const char address = 0;
    } here;
    here.lock.lock();
    here.lock.begin_unlock();
    EXPECT_EQ(
        detail::park({.what = "test",
                      .address = &here.address,
                      .then = [](void* address) { EXPECT_EQ(detail::unpark(address, 1), 1U); },
                      .then_argument = const_cast<char*>(&here.address)}),
        detail::unparked::woken);
    thread late([&] { here.lock.end_unlock(); });
    here.lock.lock();
    here.lock.unlock();
    late.join();
  });
}

// Whether `wait`, called with the lock that `take` takes and `leave` gives back, can be found at
// `address` before it is recorded that it has given away its lock: it stops there, as we hold what
// is recorded.
template <class Take, class Wait, class Leave, class Notify>
bool is_found_too_early(const void* address, const Take& take, const Wait& wait, const Leave& leave,
                        const Notify& notify) {
  runtime rt(watching(1));
  std::atomic<pid_t> worker{0};
  std::atomic<bool> may_wait{false};
  std::atomic<bool> has_ended{false};
  rt.submit([&] {
    take();
    worker = gettid();
    while (!may_wait) {
    }
    wait();
    leave();
    has_ended = true;
  });
  while (worker == 0) std::this_thread::yield();
  detail::hold_lock_graph();
  may_wait = true;
  while (!sleeps(worker)) std::this_thread::yield();
  const bool is_found = detail::is_awaited(address);
  detail::release_lock_graph();
  while (!has_ended) {
    notify();
    std::this_thread::yield();
  }
  return is_found;
}

TEST_F(deadlock_death, knows_that_a_lock_is_given_away_before_its_waiter_is_found) {
  mutex m;
  condition_variable changed;
  const auto wait = [&] {
    std::unique_lock lock(m, std::adopt_lock);
    changed.wait(lock);
    (void)lock.release();
  };
  EXPECT_FALSE(is_found_too_early(
      &changed, [&] { m.lock(); }, wait, [&] { m.unlock(); }, [&] { changed.notify_all(); }));
}

TEST_F(deadlock_death, knows_it_of_posix_threads) {
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  EXPECT_FALSE(is_found_too_early(
      &changed, [&] { strata_pthread_mutex_lock(&m); },
      [&] { strata_pthread_cond_wait(&changed, &m); }, [&] { strata_pthread_mutex_unlock(&m); },
      [&] { strata_pthread_cond_broadcast(&changed); }));
}

// Who comes later has its stack, and waits for nobody who waits.
TEST_F(deadlock_death, is_not_of_the_next_thread_what_one_has_left_locked) {
  EXPECT_EXIT(
      {
        runtime rt(watching(1));
        rt.run([] {
          static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
          thread([] { strata_pthread_mutex_lock(&m); }).join();
          thread next({.name = "next"}, [] { strata_pthread_mutex_lock(&m); });
          (void)text_when("next", "waiting for mutex");
          strata_pthread_mutex_unlock(&m);
          next.join();
        });
        std::_Exit(42);
      },
      ::testing::ExitedWithCode(42), "");
}

// Fibers that lock and unlock `m`, each in one way, and count.
struct in_a_fiber : threaded {
  mutex* m;
  void (*use)(mutex&);
  std::atomic<int>* done;
  void start() {
    use(*m);
    ++*done;
    terminate();
  }
};

// Last, these two: the process watches from then on.
TEST(deadlock, is_not_seen_in_a_wait_that_was_refused) {
  runtime rt(watching(1));
  rt.run([] {
    mutex first, second;
    counting_semaphore<> begun(0), go(0);
    std::atomic<int> done{0};
    auto by_fiber = [&, ran = 0](mutex& m, void (*use)(mutex&)) mutable {
      token<in_a_fiber>(&m, use, &done);
      for (++ran; done != ran;) this_thread::yield();
    };
    thread other({.name = "other"}, [&] {
      const std::lock_guard lock(first);
      begun.release();
      go.acquire();
      const std::lock_guard both(second);
    });
    begun.acquire();
    by_fiber(first, [](mutex& m) { EXPECT_THROW(m.lock(), misuse_error); });
    // By who is taken for the same: a fiber of this worker.
    by_fiber(second, [](mutex& m) { EXPECT_TRUE(m.try_lock()); });
    go.release();
    (void)text_when("other", "waiting for mutex");
    by_fiber(second, [](mutex& m) { m.unlock(); });
    other.join();
  });
}

TEST(deadlock, is_not_seen_where_there_is_none) {
  runtime rt(watching(2));
  rt.run([] {
    mutex m, n;
    recursive_mutex r;
    timed_mutex held;
    condition_variable changed;
    int turns = 0;
    const auto work = [&](int me) {
      for (int i = 0; i < 200; ++i) {
        const std::scoped_lock both(m, n);
        const std::lock_guard once(r);
        const std::lock_guard again(r);
        ++turns;
      }
      std::unique_lock lock(m);
      ++turns;
      changed.notify_all();
      changed.wait(lock, [&] { return turns == 4 * 201; });
      // Both sides wait for what the other holds, but not for ever.
      if (me == 0) {
        EXPECT_FALSE(held.try_lock_for(std::chrono::milliseconds(1)));
      }
    };
    held.lock();
    std::vector<thread> all;
    for (int i = 0; i < 4; ++i) all.emplace_back(work, i);
    for (thread& t : all) t.join();
    held.unlock();
    EXPECT_EQ(turns, 4 * 201);
  });
}

}  // namespace
}  // namespace strata::test
