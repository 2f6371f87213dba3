// SPDX-License-Identifier: Apache-2.0
#include "cluster/words/inbox_mutex.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace strata::cluster {
namespace {

// Of which whoever waits without a limit gets up late.
struct slow_to_wake : std::timed_mutex {
  void lock() {
    while (!wakes.load()) std::this_thread::yield();
    std::timed_mutex::lock();
  }
  static inline std::atomic<bool> wakes{true};
};

// A thread that waits for the mutex, which is locked, has lost its patience, and keeps the mutex
// until it may go.
class impatient {
 public:
  template <class Mutex>
  explicit impatient(Mutex& m)
      : thread_([this, &m] {
          const std::lock_guard lock(m);
          has_it_.store(true);
          while (!may_go_.load()) std::this_thread::yield();
        }) {
    while (!m.somebody_is_first()) std::this_thread::yield();
  }
  ~impatient() {
    let_go();
    thread_.join();
  }
  impatient(const impatient&) = delete;
  impatient& operator=(const impatient&) = delete;

  void let_go() { may_go_.store(true); }
  [[nodiscard]] bool has_had_it() const { return has_it_.load(); }

 private:
  std::atomic<bool> has_it_{false}, may_go_{false};
  std::thread thread_;
};

TEST(inbox_mutex, is_one_threads_at_a_time) {
  inbox_mutex m;
  ASSERT_TRUE(m.try_lock());
  std::thread([&] {
    EXPECT_FALSE(m.try_lock());
    EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now()));
  }).join();
  m.unlock();
  EXPECT_TRUE(m.try_lock_until(std::chrono::system_clock::now()));
  m.unlock();
}

// Who leaves it and comes back at once finds that another is first, who has yet to wake up.
TEST(inbox_mutex, goes_to_who_has_waited_for_long) {
  inbox_mutex m;
  m.lock();
  impatient other(m);
  m.unlock();
  other.let_go();
  m.lock();
  EXPECT_TRUE(other.has_had_it());
  m.unlock();
}

TEST(inbox_mutex, is_nobody_elses_until_who_has_waited_for_long_is_awake) {
  fair_mutex<slow_to_wake> m;
  m.lock();
  slow_to_wake::wakes = false;
  impatient other(m);
  m.unlock();
  EXPECT_FALSE(m.try_lock());
  EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now()));
  EXPECT_FALSE(other.has_had_it());
  slow_to_wake::wakes = true;
  other.let_go();
  m.lock();
  EXPECT_TRUE(other.has_had_it());
  m.unlock();
}

TEST(inbox_mutex, is_free_for_all_again_afterwards) {
  inbox_mutex m;
  m.lock();
  {
    const impatient other(m);
    m.unlock();
  }
  EXPECT_FALSE(m.somebody_is_first());
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

// Several that have waited for long come one after the other.
TEST(inbox_mutex, is_had_by_all_who_want_it) {
  constexpr int threads = 4, each = 200;
  inbox_mutex m;
  int turns = 0;  // with m
  std::atomic<int> left{threads};
  const auto work = [&] {
    for (int i = 0; i < each; ++i) {
      const std::lock_guard lock(m);
      ++turns;
    }
    --left;
  };
  m.lock();
  std::thread all[threads];
  for (std::thread& t : all) t = std::thread(work);
  while (!m.somebody_is_first()) std::this_thread::yield();
  m.unlock();
  while (left.load() != 0) {
    const std::lock_guard lock(m);
    std::this_thread::yield();
  }
  for (std::thread& t : all) t.join();
  EXPECT_EQ(turns, threads * each);
}

}  // namespace
}  // namespace strata::cluster
