// SPDX-License-Identifier: Apache-2.0
// What compiles with the standard's names compiles with ours, and means the same.
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "../sched/support.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

// ---- calls without strata:: that find std's functions by their arguments, too ----

using measure = std::size_t (*)(const std::string&);
static_assert(std::is_same_v<decltype(async(strata::launch::deferred, measure(), std::string())),
                             strata::future<std::size_t>>);
static_assert(
    std::is_same_v<decltype(async(measure(), std::string())), strata::future<std::size_t>>);

// ---- every name that a program may write with std:: before it ----

using strata::adopt_lock, strata::adopt_lock_t, strata::defer_lock, strata::defer_lock_t,
    strata::try_to_lock, strata::try_to_lock_t;
using strata::async, strata::future, strata::packaged_task, strata::promise, strata::shared_future;
using strata::barrier, strata::binary_semaphore, strata::counting_semaphore, strata::latch;
using strata::call_once, strata::once_flag;
using strata::condition_variable, strata::condition_variable_any, strata::cv_status,
    strata::notify_all_at_thread_exit;
using strata::future_category, strata::future_errc, strata::future_error, strata::future_status,
    strata::launch;
using strata::jthread, strata::thread;
using strata::lock, strata::lock_guard, strata::scoped_lock, strata::shared_lock, strata::try_lock,
    strata::unique_lock;
using strata::mutex, strata::recursive_mutex, strata::recursive_timed_mutex, strata::shared_mutex,
    strata::shared_timed_mutex, strata::timed_mutex;
using strata::nostopstate, strata::nostopstate_t, strata::stop_callback, strata::stop_source,
    strata::stop_token;
using strata::this_thread::get_id, strata::this_thread::sleep_for, strata::this_thread::sleep_until,
    strata::this_thread::yield;

// ---- types that the standard tells apart ----

constexpr int overload(const mutex&) { return 1; }
constexpr int overload(const timed_mutex&) { return 2; }
constexpr int overload(const recursive_mutex&) { return 3; }
constexpr int overload(const recursive_timed_mutex&) { return 4; }
constexpr int overload(const shared_mutex&) { return 5; }
constexpr int overload(const shared_timed_mutex&) { return 6; }
static_assert(!std::is_same_v<shared_mutex, shared_timed_mutex>);
static_assert(!std::is_convertible_v<shared_mutex&, shared_timed_mutex&>);
static_assert(!std::is_convertible_v<shared_timed_mutex&, shared_mutex&>);

template <class T>
concept has_deadlines = requires(T& m) {
  m.try_lock_for(std::chrono::seconds(1));
  m.try_lock_until(std::chrono::steady_clock::now());
};
static_assert(has_deadlines<timed_mutex> && has_deadlines<recursive_timed_mutex> &&
              has_deadlines<shared_timed_mutex>);
static_assert(!has_deadlines<mutex> && !has_deadlines<recursive_mutex> &&
              !has_deadlines<shared_mutex>);

// ---- what each is, and what throws nothing ----

template <class Lock>
constexpr bool is_a_lock =
    !std::is_copy_constructible_v<Lock> && !std::is_move_constructible_v<Lock> &&
    !std::is_copy_assignable_v<Lock> && std::is_nothrow_default_constructible_v<Lock> &&
    std::is_standard_layout_v<Lock> &&
    std::is_same_v<decltype(std::declval<Lock&>().lock()), void> &&
    std::is_same_v<decltype(std::declval<Lock&>().try_lock()), bool>;
static_assert(is_a_lock<mutex> && is_a_lock<timed_mutex> && is_a_lock<recursive_mutex> &&
              is_a_lock<recursive_timed_mutex> && is_a_lock<shared_mutex> &&
              is_a_lock<shared_timed_mutex>);
static_assert(noexcept(std::declval<mutex&>().try_lock()));
static_assert(noexcept(std::declval<recursive_mutex&>().try_lock()));
static_assert(noexcept(std::declval<recursive_timed_mutex&>().try_lock()));

static_assert(std::is_nothrow_move_constructible_v<thread> &&
              !std::is_copy_constructible_v<thread>);
static_assert(std::is_nothrow_move_constructible_v<jthread> &&
              !std::is_copy_constructible_v<jthread>);
static_assert(std::is_nothrow_swappable_v<thread> && std::is_nothrow_swappable_v<jthread>);
static_assert(std::is_swappable_v<promise<int>> && std::is_swappable_v<packaged_task<int()>>);
static_assert(!std::is_convertible_v<void (*)(), thread>, "explicit");
static_assert(!std::is_convertible_v<void (*)(), jthread>, "explicit");
static_assert(noexcept(std::declval<condition_variable&>().notify_all()));
static_assert(!std::is_copy_constructible_v<condition_variable>);
static_assert(!std::is_convertible_v<std::ptrdiff_t, latch>, "explicit");

// ---- initialised before anything runs ----

constinit mutex static_mutex;
constinit recursive_mutex static_recursive_mutex;
constinit shared_mutex static_shared_mutex;
constinit shared_timed_mutex static_shared_timed_mutex;
constinit once_flag static_flag;
constinit counting_semaphore<4> static_semaphore(2);
constinit latch static_latch(2);
constinit barrier<> static_barrier(2);
struct counts_phases {
  int* phases;
  void operator()() const noexcept { ++*phases; }
};
constinit int phases = 0;
constinit barrier<counts_phases> static_barrier_that_counts(2, counts_phases{&phases});

// ---- the cost of none of this ----

#if !defined(STRATA_DEBUG_CHECKS)
static_assert(sizeof(mutex) == 4 && sizeof(timed_mutex) == 4);
static_assert(sizeof(shared_mutex) == 8 && sizeof(shared_timed_mutex) == 8);
static_assert(sizeof(condition_variable) == 4);
static_assert(sizeof(binary_semaphore) == 8 && sizeof(latch) == 8);
static_assert(std::is_trivially_destructible_v<mutex> &&
              std::is_trivially_destructible_v<recursive_timed_mutex> &&
              std::is_trivially_destructible_v<shared_mutex> &&
              std::is_trivially_destructible_v<condition_variable> &&
              std::is_trivially_destructible_v<binary_semaphore> &&
              std::is_trivially_destructible_v<latch>);
#endif

TEST(conformance, overloads_on_locks_are_told_apart) {
  shared_mutex shared;
  shared_timed_mutex shared_timed;
  timed_mutex timed;
  EXPECT_EQ(overload(static_mutex), 1);
  EXPECT_EQ(overload(timed), 2);
  EXPECT_EQ(overload(static_recursive_mutex), 3);
  EXPECT_EQ(overload(recursive_timed_mutex()), 4);
  EXPECT_EQ(overload(shared), 5);
  EXPECT_EQ(overload(shared_timed), 6);
}

TEST(conformance, statics_work) {
  runtime rt(with_workers(2));
  rt.run([] {
    static int calls = 0;
    const int phases_before = phases;
    int together = 0;
    const auto take_part = [&] {
      static_barrier.arrive_and_wait();
      static_barrier_that_counts.arrive_and_wait();
      static_semaphore.acquire();
      {
        const std::scoped_lock all(static_mutex, static_recursive_mutex, static_shared_mutex,
                                   static_shared_timed_mutex);
        ++together;
      }
      static_semaphore.release();
      call_once(static_flag, [] { ++calls; });
    };
    thread one(take_part);
    thread two(take_part);
    one.join();
    two.join();
    EXPECT_EQ(together, 2);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(phases, phases_before + 1);
    EXPECT_FALSE(static_latch.try_wait());
  });
}

TEST(conformance, several_locks_by_hand) {
  runtime rt(with_workers(1));
  rt.run([] {
    mutex a;
    timed_mutex b;
    strata::lock(a, b);
    thread([&] { EXPECT_EQ(strata::try_lock(a, b), 0); }).join();
    const strata::lock_guard adopted(a, strata::adopt_lock);
    strata::unique_lock late(b, strata::adopt_lock_t());
    late.unlock();
    strata::unique_lock deferred(b, strata::defer_lock);
    EXPECT_FALSE(deferred.owns_lock());
    EXPECT_TRUE(deferred.try_lock());
    thread([&] { EXPECT_FALSE(strata::unique_lock(b, strata::try_to_lock).owns_lock()); }).join();
  });
}

TEST(conformance, packaged_tasks_are_deduced) {
  const auto square = [](int x) { return x * x; };
  packaged_task by_lambda(square);
  static_assert(std::is_same_v<decltype(by_lambda), packaged_task<int(int)>>);
  packaged_task moved([kept = std::make_unique<int>(3)]() mutable noexcept { return *kept; });
  static_assert(std::is_same_v<decltype(moved), packaged_task<int()>>);
  packaged_task by_pointer(+square);
  static_assert(std::is_same_v<decltype(by_pointer), packaged_task<int(int)>>);
  struct by_value_of_this {
    long operator()(short a, const char& b) & { return a + b; }
  };
  packaged_task by_object{by_value_of_this()};
  static_assert(std::is_same_v<decltype(by_object), packaged_task<long(short, const char&)>>);
  packaged_task by_function(std::function<void(double)>([](double) {}));
  static_assert(std::is_same_v<decltype(by_function), packaged_task<void(double)>>);
  auto result = by_lambda.get_future();
  by_lambda(7);
  EXPECT_EQ(result.get(), 49);
  auto other = moved.get_future();
  moved();
  EXPECT_EQ(other.get(), 3);
}

// The standard's answer is false, where lock() throws.
TEST(conformance, a_recursive_mutex_at_its_limit_is_not_had_again) {
  struct worn : recursive_timed_mutex {
    using recursive_timed_mutex::depth_;
  };
  runtime rt(with_workers(1));
  rt.run([] {
    worn m;
    m.lock();
    m.depth_ = UINT32_MAX;
    EXPECT_FALSE(m.try_lock());
    EXPECT_FALSE(m.try_lock_for(std::chrono::hours(1)));
    EXPECT_FALSE(m.try_lock_until(std::chrono::steady_clock::now() + std::chrono::hours(1)));
    EXPECT_THROW(m.lock(), std::system_error);
    m.depth_ = 1;
    m.unlock();
    bool taken = false;
    thread([&] {
      taken = m.try_lock();
      if (taken) m.unlock();
    }).join();
    EXPECT_TRUE(taken);
  });
}

}  // namespace
}  // namespace strata::test
