// SPDX-License-Identifier: Apache-2.0
// Condition variables: nobody who is to be woken stays asleep, whoever wakes.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "../common/refuse_threads.hpp"
#include "../sched/support.hpp"
#include "strata/condition_variable.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/pthread.h"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

template <class Condition>
class any_condition : public ::testing::Test {};
using conditions = ::testing::Types<condition_variable, condition_variable_any>;
TYPED_TEST_SUITE(any_condition, conditions);

TYPED_TEST(any_condition, a_bounded_queue_loses_nothing) {
  for (const unsigned workers : {1U, 2U, 4U, 8U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      mutex m;
      TypeParam not_full, not_empty;
      std::deque<int> queue;
      constexpr std::size_t capacity = 4;
      constexpr int each = scaled(500, 100);
      constexpr int parties = 6;
      long received = 0;
      std::vector<thread> threads;
      for (int p = 0; p < parties; ++p) {
        threads.emplace_back([&] {
          for (int i = 1; i <= each; ++i) {
            std::unique_lock lock(m);
            not_full.wait(lock, [&] { return queue.size() < capacity; });
            queue.push_back(i);
            not_empty.notify_one();
          }
        });
        threads.emplace_back([&] {
          for (int i = 0; i < each; ++i) {
            std::unique_lock lock(m);
            not_empty.wait(lock, [&] { return !queue.empty(); });
            received += queue.front();
            queue.pop_front();
            not_full.notify_one();
          }
        });
      }
      for (thread& t : threads) t.join();
      EXPECT_EQ(received, long{parties} * each * (each + 1) / 2);
      EXPECT_TRUE(queue.empty());
    });
  }
}

TYPED_TEST(any_condition, notify_all_wakes_all) {
  runtime rt(with_workers(2));
  rt.run([] {
    mutex m;
    TypeParam go;
    bool open = false;
    int through = 0;
    std::vector<thread> threads;
    for (int i = 0; i < 100; ++i) {
      threads.emplace_back([&] {
        std::unique_lock lock(m);
        go.wait(lock, [&] { return open; });
        ++through;
      });
    }
    for (int i = 0; i < 10; ++i) this_thread::yield();
    {
      const std::lock_guard lock(m);
      open = true;
    }
    go.notify_all();
    for (thread& t : threads) t.join();
    EXPECT_EQ(through, 100);
  });
}

TYPED_TEST(any_condition, times_out) {
  runtime rt(with_workers(1));
  rt.run([] {
    mutex m;
    TypeParam never;
    std::unique_lock lock(m);
    const auto began = std::chrono::steady_clock::now();
    while (never.wait_for(lock, 2ms) == cv_status::no_timeout) {
    }
    EXPECT_GE(std::chrono::steady_clock::now() - began, 2ms);
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_FALSE(m.try_lock());
    EXPECT_EQ(never.wait_until(lock, std::chrono::system_clock::now() - 1h), cv_status::timeout);
    EXPECT_FALSE(never.wait_for(lock, 1ms, [] { return false; }));
    EXPECT_TRUE(never.wait_for(lock, 24h, [] { return true; }));
  });
}

// A notification that meets a timeout is not lost: somebody else gets it, or it came too late.
TYPED_TEST(any_condition, timeouts_and_notifications_meet) {
  runtime rt(with_workers(4));
  rt.run([] {
    mutex m;
    TypeParam changed;
    long tickets = 0, taken = 0;
    constexpr long all = scaled(2000, 300);
    std::vector<thread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        std::unique_lock lock(m);
        while (taken < all) {
          changed.wait_for(lock, std::chrono::microseconds(10 + 13 * i));
          if (tickets > 0) {
            --tickets;
            ++taken;
          }
        }
      });
    }
    for (long i = 0; i < all; ++i) {
      {
        const std::lock_guard lock(m);
        ++tickets;
      }
      changed.notify_one();
      if (i % 16 == 0) this_thread::yield();
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(taken, all);
    EXPECT_EQ(tickets, 0);
  });
}

TEST(condition_variable_any, ends_with_a_stop_request) {
  for (const unsigned workers : {1U, 4U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      for (int round = 0; round < scaled(200, 40); ++round) {
        mutex m;
        condition_variable_any never;
        std::atomic<int> begun{0};
        jthread waits([&](std::stop_token stop) {
          std::unique_lock lock(m);
          ++begun;
          EXPECT_FALSE(never.wait(lock, stop, [] { return false; }));
          EXPECT_TRUE(lock.owns_lock());
        });
        jthread waits_timed([&](std::stop_token stop) {
          std::unique_lock lock(m);
          ++begun;
          EXPECT_FALSE(never.wait_for(lock, stop, 24h, [] { return false; }));
        });
        if (round % 2 == 0) {
          while (begun != 2) this_thread::yield();
        }
        waits.request_stop();
        waits_timed.request_stop();
      }
    });
  }
}

// What is waited for may come together with the request.
TEST(condition_variable_any, a_stop_request_wakes_nobody_else) {
  runtime rt(with_workers(1));
  rt.run([&] {
    constexpr unsigned waiters = scaled(500, 200);
    const auto stop_each = [&](auto no_stop) {
      using token = decltype(no_stop);
      mutex m;
      condition_variable_any never;
      std::vector<jthread> all;
      unsigned waiting = 0;
      for (unsigned i = 0; i < waiters; ++i) {
        all.emplace_back([&](token stop) {
          std::unique_lock lock(m);
          ++waiting;
          EXPECT_FALSE(never.wait(lock, stop, [] { return false; }));
        });
      }
      while (waiting < waiters) this_thread::yield();  // the only worker: the last waits, too
      const std::uint64_t before = rt.stats().total().suspensions;
      for (jthread& t : all) {
        t.request_stop();
        t.join();
      }
      EXPECT_LE(rt.stats().total().suspensions - before, 3U * waiters);
    };
    stop_each(stop_token());
    stop_each(std::stop_token());
  });
}

TEST(condition_variable_any, asks_once_more_after_a_stop_request) {
  runtime rt(with_workers(1));
  rt.run([] {
    mutex m;
    condition_variable_any never;
    std::unique_lock lock(m);
    const auto expect_true = [&](auto wait) {
      std::stop_source stop;
      int asked = 0;
      EXPECT_TRUE(wait(stop.get_token(), [&] {
        stop.request_stop();
        return ++asked == 2;
      }));
      EXPECT_EQ(asked, 2);
    };
    expect_true([&](auto stop, auto holds) { return never.wait(lock, stop, holds); });
    expect_true([&](auto stop, auto holds) { return never.wait_for(lock, stop, 24h, holds); });
    expect_true([&](auto stop, auto holds) {
      return never.wait_until(lock, stop, std::chrono::steady_clock::now() + 24h, holds);
    });
  });
}

TEST(condition_variable_any, waits_with_any_lock) {
  runtime rt(with_workers(2));
  rt.run([] {
    shared_mutex m;
    condition_variable_any changed;
    bool ready = false;
    thread reader([&] {
      std::shared_lock lock(m);
      changed.wait(lock, [&] { return ready; });
    });
    {
      const std::lock_guard lock(m);
      ready = true;
    }
    changed.notify_all();
    reader.join();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

struct notifies : threaded {
  condition_variable* changed;
  std::atomic<bool>* ready;
  void start() {
    ready->store(true);
    changed->notify_all();
    terminate();
  }
};

TEST(condition_variable, notified_by_fibers) {
  // They outlive the runtime: who sees the flag must not end what the fiber is about to notify.
  mutex m;
  condition_variable changed;
  std::atomic<bool> ready{false};
  runtime rt(with_workers(2));
  rt.run([&] {
    for (int i = 0; i < 200; ++i) {
      ready = false;
      std::unique_lock lock(m);
      token<notifies>(&changed, &ready);
      // A fiber cannot lock, so its notification may come before the wait.
      while (!ready) changed.wait_for(lock, 1ms);
    }
  });
}

struct notifies_any : threaded {
  condition_variable_any* changed;
  binary_semaphore* done;
  void start() {
    changed->notify_one();
    done->release();
    terminate();
  }
};

// While somebody is about to wait, whose lock takes its time.
TEST(condition_variable_any, notified_by_a_fiber_between_unlock_and_wait) {
  for (const unsigned workers : {1U, 2U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      struct notifies_itself {
        condition_variable_any& changed;
        bool is_locked = true;
        void lock() { is_locked = true; }
        void unlock() {
          is_locked = false;
          binary_semaphore done(0);
          token<notifies_any>(&changed, &done);
          done.acquire();
        }
      };
      condition_variable_any changed;
      notifies_itself lock{changed};
      for (int i = 0; i < 20; ++i) {
        changed.wait(lock);  // it has been notified
        EXPECT_TRUE(lock.is_locked);
      }
    });
  }
}

// There is no thread for the deadline. 42: the wait has thrown, with the lock in the caller's
// hands.
template <class Condition>
int wait_without_a_thread_for_it() {
  runtime rt(with_workers(1));
  return rt.run([] {
    mutex m;
    Condition never;
    std::unique_lock lock(m);
    refuse_threads();
    try {
      never.wait_for(lock, 24h);
      return 4;
    } catch (const std::system_error&) {
    }
    if (!lock.owns_lock()) return 5;
    bool taken = false;
    thread([&] {
      taken = m.try_lock();
      if (taken) m.unlock();
    }).join();
    if (taken) return 6;
    lock.unlock();
    return m.try_lock() ? (m.unlock(), 42) : 7;
  });
}

template <class Condition>
class wait_that_throws : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "the sanitizer needs the addresses";
  }
};
TYPED_TEST_SUITE(wait_that_throws, conditions);

TYPED_TEST(wait_that_throws, leaves_the_lock_with_the_caller) {
  EXPECT_EXIT(std::_Exit(wait_without_a_thread_for_it<TypeParam>()), ::testing::ExitedWithCode(42),
              "");
}

// A thread that is left in the middle of a wait, by cancellation at any time, has the lock while
// its objects end, and only then. If it was notified it is left while it locks again.
template <class Condition>
void expect_the_lock_while_a_wait_is_left(bool notified) {
  runtime rt(with_workers(1));
  rt.run([notified] {
    struct shared {
      mutex m;
      Condition changed;
      bool waits = false;
      bool was_left = false;
      bool was_taken = false;
      static void* wait(void* all) {
        auto& s = *static_cast<shared*>(all);
        int before = 0;
        strata_pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
        std::unique_lock lock(s.m);
        struct at_end {
          shared& s;
          ~at_end() {
            s.was_left = true;
            s.was_taken = s.m.try_lock();
          }
        } const look{s};
        s.waits = true;
        s.changed.wait(lock, [] { return false; });
        return nullptr;
      }
    } s;
    pthread_t t{};
    ASSERT_EQ(strata_pthread_create(&t, nullptr, &shared::wait, &s), 0);
    while (!s.waits) this_thread::yield();
    s.m.lock();  // it waits
    if (notified) {
      s.changed.notify_all();
      for (int i = 0; i < 10; ++i) this_thread::yield();  // and waits for the lock
    }
    ASSERT_EQ(strata_pthread_cancel(t), 0);
    for (int i = 0; i < 10; ++i) this_thread::yield();
    EXPECT_FALSE(s.was_left) << "without the lock";
    EXPECT_FALSE(s.m.try_lock()) << "unlocked by who did not have it";
    s.m.unlock();
    void* result = nullptr;
    ASSERT_EQ(strata_pthread_join(t, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_FALSE(s.was_taken);
    EXPECT_TRUE(s.m.try_lock());
    s.m.unlock();
  });
}

TEST(condition_variable, is_left_with_the_lock) {
  for (const bool notified : {false, true})
    expect_the_lock_while_a_wait_is_left<condition_variable>(notified);
}
TEST(condition_variable_any, is_left_with_the_lock) {
  for (const bool notified : {false, true})
    expect_the_lock_while_a_wait_is_left<condition_variable_any>(notified);
}

// Which cannot be had for a while, when it has been had once.
struct refuses_to_lock {
  mutex m;
  int refusals;
  bool is_held = false;
  void lock() {
    if (refusals-- > 0) throw std::runtime_error("no lock");
    m.lock();
    is_held = true;
  }
  void unlock() {
    is_held = false;
    m.unlock();
  }
  ~refuses_to_lock() {
    if (is_held) m.unlock();
  }
};

// Returns 42 if what leaves the wait leaves the lock with the caller.
int wait_with_a_lock_that_refuses(int times, bool without_a_thread_for_it = false) {
  runtime rt(with_workers(1));
  return rt.run([=] {
    refuses_to_lock lock{.refusals = 0};
    condition_variable_any never;
    lock.lock();
    lock.refusals = times;
    if (without_a_thread_for_it) refuse_threads();
    try {
      (void)never.wait_for(lock, 1us);
    } catch (const std::runtime_error&) {
      return lock.is_held ? 42 : 3;
    }
    return 4;
  });
}

TEST(condition_variable_any, is_left_with_a_lock_that_was_refused_once) {
  EXPECT_EQ(wait_with_a_lock_that_refuses(1), 42);
}

// Nor need it be what ends the wait.
TEST(condition_variable_any, is_left_for_want_of_a_thread_with_a_lock_that_was_refused_once) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "the sanitizer needs the addresses";
  EXPECT_EXIT(std::_Exit(wait_with_a_lock_that_refuses(1, true)), ::testing::ExitedWithCode(42),
              "");
}

TEST(condition_variable_any, is_left_by_cancellation_with_a_lock_that_was_refused_once) {
  runtime rt(with_workers(1));
  rt.run([] {
    struct shared {
      refuses_to_lock lock{.refusals = 0};
      condition_variable_any never;
      bool waits = false;
      bool was_held = false;
      static void* wait(void* all) {
        auto& s = *static_cast<shared*>(all);
        int before = 0;
        strata_pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
        struct at_end {
          shared& s;
          ~at_end() {
            s.was_held = s.lock.is_held;
            if (s.was_held) s.lock.unlock();
          }
        } const look{s};
        s.lock.lock();
        s.lock.refusals = 1;
        s.waits = true;
        s.never.wait(s.lock, [] { return false; });
        return nullptr;
      }
    } s;
    pthread_t t{};
    ASSERT_EQ(strata_pthread_create(&t, nullptr, &shared::wait, &s), 0);
    while (!s.waits) this_thread::yield();
    s.lock.m.lock();  // it waits
    s.lock.m.unlock();
    ASSERT_EQ(strata_pthread_cancel(t), 0);
    void* result = nullptr;
    ASSERT_EQ(strata_pthread_join(t, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_TRUE(s.was_held);
  });
}

TEST(condition_variable_any, a_lock_that_cannot_be_had_again_ends_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(wait_with_a_lock_that_refuses(2)), testing::KilledBySignal(SIGABRT),
              "no lock");
}

struct counts_unlocks {
  int unlocks = 0;
  void lock() {}
  void unlock() { ++unlocks; }
};

struct waits_in_a_fiber : threaded {
  condition_variable_any* never;
  counts_unlocks* lock;
  slot_ptr done;
  bool* refused;
  void start() {
    try {
      never->wait(*lock);
    } catch (const misuse_error&) {
      *refused = true;
    }
    sync(done);
    terminate();
  }
};

TEST(condition_variable_any, a_fiber_is_refused_before_it_unlocks) {
  runtime rt(with_workers(1));
  rt.run([] {
    condition_variable_any never;
    counts_unlocks lock;
    bool refused = false;
    completion done;
    token<waits_in_a_fiber>(&never, &lock, done.sptr(), &refused);
    done.wait();
    EXPECT_TRUE(refused);
    EXPECT_EQ(lock.unlocks, 0);
  });
}

TEST(condition_variable, between_threads_of_both_kinds) {
  runtime rt(with_workers(2));
  mutex m;
  condition_variable changed;
  int turn = 0;
  constexpr int rounds = scaled(2000, 300);
  const auto play = [&](int mine) {
    for (int i = 0; i < rounds; ++i) {
      std::unique_lock lock(m);
      changed.wait(lock, [&] { return turn == mine; });
      turn = 1 - mine;
      changed.notify_all();
    }
  };
  std::thread outside([&] { play(1); });
  rt.run([&] {
    thread inside([&] { play(0); });
    inside.join();
  });
  outside.join();
  EXPECT_EQ(turn, 0);
}

}  // namespace
}  // namespace strata::test
