// SPDX-License-Identifier: Apache-2.0
#include "base/fair_mutex.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace strata {
namespace {

using std::chrono::system_clock;

// Of which whoever waits without a limit gets up late, as it is told.
struct slow_to_wake : std::timed_mutex {
  void lock() {
    ++firsts;
    while (!wakes.load()) std::this_thread::yield();
    std::timed_mutex::lock();
  }
  static inline std::atomic<bool> wakes{true};
  static inline std::atomic<int> firsts{0};  // who have waited so
};

// While this lives those who are first sleep, if so, and are counted.
class sleepers {
 public:
  explicit sleepers(bool sleep) {
    slow_to_wake::wakes = !sleep;
    slow_to_wake::firsts = 0;
  }
  ~sleepers() { wake(); }
  sleepers(const sleepers&) = delete;
  sleepers& operator=(const sleepers&) = delete;

  static void wake() { slow_to_wake::wakes = true; }
};

// A thread that waits for the mutex, which is locked, has lost its patience unless another had
// before, and keeps the mutex until it may go.
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

// Without a wait.
template <class Mutex>
bool can_be_tried(Mutex& m) {
  return std::unique_lock(m, std::try_to_lock).owns_lock();
}
template <class Mutex>
bool can_be_had_by_now(Mutex& m) {
  return std::unique_lock(m, system_clock::now()).owns_lock();
}

TEST(fair_mutex, is_one_threads_at_a_time) {
  fair_mutex m;
  {
    const std::lock_guard lock(m);
    std::thread([&] {
      EXPECT_FALSE(can_be_tried(m));
      EXPECT_FALSE(can_be_had_by_now(m));
    }).join();
  }
  EXPECT_TRUE(can_be_tried(m));
  EXPECT_TRUE(can_be_had_by_now(m));
}

// Who leaves it and comes back at once finds that another is first, who has yet to wake up.
TEST(fair_mutex, comes_to_who_has_waited_for_long) {
  fair_mutex m;
  m.lock();
  impatient other(m);
  m.unlock();
  other.let_go();
  const std::lock_guard lock(m);
  EXPECT_TRUE(other.has_had_it());
}

TEST(fair_mutex, is_nobody_elses_until_who_has_waited_for_long_is_awake) {
  fair_mutex<slow_to_wake> m;
  m.lock();
  const sleepers all(true);
  impatient other(m);
  m.unlock();
  EXPECT_FALSE(can_be_tried(m));
  EXPECT_FALSE(can_be_had_by_now(m));
  EXPECT_FALSE(other.has_had_it());
  sleepers::wake();
  other.let_go();
  const std::lock_guard lock(m);
  EXPECT_TRUE(other.has_had_it());
}

TEST(fair_mutex, is_free_for_all_again_afterwards) {
  fair_mutex m;
  m.lock();
  {
    const impatient other(m);
    m.unlock();
  }
  EXPECT_FALSE(m.somebody_is_first());
  EXPECT_TRUE(can_be_tried(m));
}

// One is first, and when it has the mutex the next one is.
TEST(fair_mutex, comes_to_those_who_have_waited_for_long_one_after_the_other) {
  fair_mutex<slow_to_wake> m;
  m.lock();
  const sleepers none(false);
  impatient one(m), other(m);
  // Time for the other one to be first as well, if it could.
  const auto enough = std::chrono::steady_clock::now() + 10 * m.patience;
  while (slow_to_wake::firsts.load() == 1 && std::chrono::steady_clock::now() < enough)
    std::this_thread::yield();
  EXPECT_EQ(slow_to_wake::firsts.load(), 1);
  m.unlock();
  while (!one.has_had_it() && !other.has_had_it()) std::this_thread::yield();
  while (slow_to_wake::firsts.load() != 2) std::this_thread::yield();
  EXPECT_TRUE(m.somebody_is_first());
  EXPECT_NE(one.has_had_it(), other.has_had_it());
  one.let_go();
  other.let_go();
  const std::lock_guard lock(m);
  EXPECT_TRUE(one.has_had_it());
  EXPECT_TRUE(other.has_had_it());
}

// However many want it, again and again.
TEST(fair_mutex, guards_what_is_counted_with_it) {
  constexpr int threads = 4, each = 200;
  fair_mutex m;
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
}  // namespace strata
