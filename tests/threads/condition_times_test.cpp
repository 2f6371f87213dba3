// SPDX-License-Identifier: Apache-2.0
// Waits until a time that is further away than clocks count, that has passed, or that is not
// reached.
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <stop_token>
#include <string>
#include <type_traits>

#include "../sched/support.hpp"
#include "strata/condition_variable.hpp"
#include "strata/future.hpp"
#include "strata/mutex.hpp"
#include "strata/semaphore.hpp"
#include "strata/stop_token.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

// For longer than the clock counts: it is notified, and does not time out.
template <class Condition>
void expect_no_timeout_in_the_longest_time() {
  runtime rt(with_workers(2));
  rt.run([] {
    mutex m;
    Condition changed;
    bool go = false;
    std::unique_lock lock(m);
    thread notifier([&] {
      const std::lock_guard guard(m);
      go = true;
      changed.notify_all();
    });
    while (!go) {
      EXPECT_EQ(changed.wait_for(lock, std::chrono::hours::max()), cv_status::no_timeout);
    }
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::nanoseconds::max(), [&] { return go; }));
    lock.unlock();
    notifier.join();
    lock.lock();
    go = false;
    thread later([&] {
      const std::lock_guard guard(m);
      go = true;
      changed.notify_all();
    });
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::hours::max(), [&] { return go; }));
    if constexpr (std::is_same_v<Condition, condition_variable_any>) {
      std::stop_source stop;
      stop.request_stop();
      EXPECT_FALSE(changed.wait_for(lock, stop.get_token(), std::chrono::hours::max(),
                                    [] { return false; }));
    }
    lock.unlock();
    later.join();
  });
}

TEST(condition_variable, waits_for_the_longest_time) {
  expect_no_timeout_in_the_longest_time<condition_variable>();
}
TEST(condition_variable_any, waits_for_the_longest_time) {
  expect_no_timeout_in_the_longest_time<condition_variable_any>();
}

// Until a time that is no number of nanoseconds: who is woken in vain waits on.
template <class Condition, class Far>
void expect_no_timeout_before(const Far& far) {
  runtime rt(with_workers(1));
  rt.run([&] {
    mutex m;
    Condition changed;
    bool go = false;
    std::unique_lock lock(m);
    thread notifier([&] {
      for (const bool last : {false, false, true}) {
        const std::lock_guard guard(m);
        go = last;
        changed.notify_all();
        if (!last) this_thread::yield();
      }
    });
    EXPECT_EQ(changed.wait_until(lock, far), cv_status::no_timeout);
    if constexpr (std::is_same_v<Condition, condition_variable_any>) {
      const stop_source stop;
      EXPECT_TRUE(changed.wait_until(lock, stop.get_token(), far, [&] { return go; }));
    } else {
      EXPECT_TRUE(changed.wait_until(lock, far, [&] { return go; }));
    }
    lock.unlock();
    notifier.join();
  });
}

using steady_hours = std::chrono::time_point<std::chrono::steady_clock, std::chrono::hours>;

TEST(condition_variable, waits_until_the_last_time) {
  expect_no_timeout_before<condition_variable>(steady_hours::max());
  expect_no_timeout_before<condition_variable>(std::chrono::sys_seconds::max());
}
TEST(condition_variable_any, waits_until_the_last_time) {
  expect_no_timeout_before<condition_variable_any>(steady_hours::max());
  expect_no_timeout_before<condition_variable_any>(std::chrono::sys_seconds::max());
}

// Of this process's threads, the one that looks after deadlines; 0: there is none.
pid_t timers_thread() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream name(entry.path() / "comm");
    std::string line;
    if (std::getline(name, line) && line == "strata-timers")
      return static_cast<pid_t>(std::stoi(entry.path().filename()));
  }
  return 0;
}

// How often it has gone to sleep.
long sleeps_of(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  const std::string what = "voluntary_ctxt_switches:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(what)) return std::stol(line.substr(what.size()));
  }
  return -1;
}

// Whoever asks in a loop lets others run, also where there is one worker.
TEST(deadline, that_has_passed_is_waited_for_by_no_thread_of_the_systems) {
  runtime rt(with_workers(1));
  rt.run([] {
    timed_mutex held;
    shared_timed_mutex shared;
    binary_semaphore none(0);
    mutex m;
    condition_variable never;
    condition_variable_any never_of_any;
    promise<void> promised;
    auto result = promised.get_future();
    held.lock();
    shared.lock();
    thread([&] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(held.try_lock_for(0s));
        EXPECT_FALSE(shared.try_lock_for(0s));
        EXPECT_FALSE(shared.try_lock_shared_for(-1s));
        EXPECT_FALSE(none.try_acquire_for(0s));
        EXPECT_FALSE(none.try_acquire_until(std::chrono::system_clock::now()));
        std::unique_lock lock(m);
        EXPECT_EQ(never.wait_for(lock, 0s), cv_status::timeout);
        EXPECT_FALSE(never_of_any.wait_for(lock, 0s, [] { return false; }));
        EXPECT_TRUE(lock.owns_lock());
      }
    }).join();
    held.unlock();
    shared.unlock();
    thread other([&] { promised.set_value(); });
    while (result.wait_for(0s) != std::future_status::ready) {
    }
    other.join();
    EXPECT_EQ(timers_thread(), 0);
  });
}

TEST(deadline, that_is_not_reached_wakes_no_thread_each_time) {
  runtime rt(with_workers(1));
  rt.run([] {
    constexpr int rounds = 2000;
    binary_semaphore ball(0), back(0);
    thread player([&] {
      for (int i = 0; i < rounds; ++i) {
        EXPECT_TRUE(ball.try_acquire_for(1h));
        back.release();
      }
    });
    for (int i = 0; i < rounds; ++i) {
      ball.release();
      back.acquire();
      // Each wait has time to wake somebody.
      if (i % 100 == 0) this_thread::sleep_for(1us);
    }
    player.join();
    ASSERT_NE(timers_thread(), 0);
    EXPECT_LE(sleeps_of(timers_thread()), 100);
  });
}

}  // namespace
}  // namespace strata::test
