// SPDX-License-Identifier: Apache-2.0
// A result comes once, from anywhere, and everybody who waits for it gets it.
#include "strata/future.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <ratio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../sched/support.hpp"
#include "expect_code.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/pthread.h"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

// Copies throw in every thread but the one that it is made in.
struct copied_by_its_maker {
  copied_by_its_maker() = default;
  copied_by_its_maker(const copied_by_its_maker& other) : maker(other.maker) {
    if (this_thread::get_id() != maker) throw std::range_error("copied elsewhere");
  }
  int operator()() const { return 3; }
  thread::id maker = this_thread::get_id();
};

TEST(future, of_a_thread_whose_function_is_not_copied_there) {
  runtime rt(with_workers(2));
  rt.run([] {
    auto made = strata::async(launch::async, copied_by_its_maker());
    EXPECT_EQ(made.get(), 3);
    // An argument that the function takes by value is.
    auto refused = strata::async(
        launch::async, [](copied_by_its_maker f) { return f(); }, copied_by_its_maker());
    EXPECT_THROW(refused.get(), std::range_error);
  });
}

TEST(future, of_a_call_that_ends_when_its_result_is_there) {
  runtime rt(with_workers(2));
  rt.run([] {
    const auto kept = std::make_shared<int>(3);
    for (const launch how : {launch::async, launch::deferred}) {
      auto threw = strata::async(how, [kept]() -> int { throw std::range_error("none"); });
      auto made = strata::async(how, [kept] { return *kept; });
      EXPECT_EQ(made.get(), 3);
      EXPECT_THROW(threw.get(), std::range_error);
      EXPECT_EQ(kept.use_count(), 1);
    }
  });
}

TEST(future, of_an_object_without_an_address_operator) {
  struct object {
    void operator&() const = delete;
  };
  runtime rt(with_workers(2));
  rt.run([] {
    object one;
    promise<object&> now, later;
    auto first = now.get_future(), second = later.get_future();
    now.set_value(one);
    EXPECT_EQ(std::addressof(first.get()), std::addressof(one));
    thread([&] { later.set_value_at_thread_exit(one); }).join();
    EXPECT_EQ(std::addressof(second.get()), std::addressof(one));
    auto third = async([&]() -> object& { return one; });
    EXPECT_EQ(std::addressof(third.get()), std::addressof(one));
  });
}

TEST(future, value_reference_and_nothing) {
  runtime rt(with_workers(2));
  rt.run([] {
    promise<std::unique_ptr<int>> p;
    auto f = p.get_future();
    EXPECT_TRUE(f.valid());
    EXPECT_EQ(f.wait_for(0s), future_status::timeout);
    thread t([&] { p.set_value(std::make_unique<int>(7)); });
    EXPECT_EQ(*f.get(), 7);
    EXPECT_FALSE(f.valid());
    t.join();

    int object = 0;
    promise<int&> by_reference;
    auto r = by_reference.get_future();
    by_reference.set_value(object);
    EXPECT_EQ(r.wait_for(0s), future_status::ready);
    EXPECT_EQ(&r.get(), &object);

    promise<void> nothing;
    auto n = nothing.get_future();
    thread later([&] { nothing.set_value(); });
    n.wait();
    EXPECT_TRUE(n.valid());
    n.get();
    later.join();
  });
}

TEST(future, exceptions_are_rethrown) {
  runtime rt(with_workers(2));
  rt.run([] {
    promise<int> p;
    auto f = p.get_future();
    thread t([&] { p.set_exception(std::make_exception_ptr(std::runtime_error("no"))); });
    EXPECT_THROW(f.get(), std::runtime_error);
    EXPECT_FALSE(f.valid());
    t.join();
  });
}

TEST(future, misuse_has_the_standards_codes) {
  runtime rt(with_workers(1));
  rt.run([] {
    future<int> none;
    EXPECT_FALSE(none.valid());
    expect_code(future_errc::no_state, [&] { none.wait(); });
    expect_code(future_errc::no_state, [&] { none.get(); });
    expect_code(future_errc::no_state, [&] { (void)none.wait_for(1s); });
    promise<int> p;
    auto f = p.get_future();
    expect_code(future_errc::future_already_retrieved, [&] { (void)p.get_future(); });
    p.set_value(1);
    expect_code(future_errc::promise_already_satisfied, [&] { p.set_value(2); });
    expect_code(future_errc::promise_already_satisfied,
                [&] { p.set_exception(std::make_exception_ptr(1)); });
    EXPECT_EQ(f.get(), 1);
    promise<int> moved(std::move(p));
    expect_code(future_errc::no_state, [&] { p.set_value(3); });
    expect_code(future_errc::no_state, [&] { (void)p.get_future(); });
    packaged_task<int()> empty;
    EXPECT_FALSE(empty.valid());
    expect_code(future_errc::no_state, [&] { empty(); });
    expect_code(future_errc::no_state, [&] { empty.reset(); });
  });
}

TEST(future, broken_promises_are_told) {
  runtime rt(with_workers(2));
  rt.run([] {
    future<int> f;
    {
      promise<int> p;
      f = p.get_future();
    }
    expect_code(future_errc::broken_promise, [&] { f.get(); });
    promise<int> p;
    f = p.get_future();
    p = promise<int>();
    expect_code(future_errc::broken_promise, [&] { f.get(); });
    packaged_task<int()> task([] { return 1; });
    f = task.get_future();
    thread dropped([t = std::move(task)] { (void)t; });
    dropped.join();
    expect_code(future_errc::broken_promise, [&] { f.get(); });
  });
}

TEST(future, a_promise_in_a_threads_function_is_broken_at_the_threads_end) {
  runtime rt(with_workers(2));
  rt.run([] {
    promise<int> p;
    future<int> f = p.get_future();
    thread t([mine = std::move(p)] {});
    expect_code(future_errc::broken_promise, [&] { f.get(); });
    t.join();
  });
}

struct refuses_copies {
  bool refuse = false;
  refuses_copies() = default;
  refuses_copies(const refuses_copies& other) : refuse(other.refuse) {
    if (refuse) throw std::runtime_error("copy");
  }
};

TEST(future, a_value_that_cannot_be_copied_leaves_the_promise_open) {
  runtime rt(with_workers(1));
  rt.run([] {
    promise<refuses_copies> p;
    auto f = p.get_future();
    refuses_copies value;
    value.refuse = true;
    EXPECT_THROW(p.set_value(value), std::runtime_error);
    EXPECT_EQ(f.wait_for(0s), future_status::timeout);
    value.refuse = false;
    p.set_value(value);
    EXPECT_FALSE(f.get().refuse);
  });
}

TEST(future, swap_and_allocators) {
  runtime rt(with_workers(1));
  rt.run([] {
    promise<int> a(std::allocator_arg, std::allocator<int>());
    promise<int> b;
    auto fa = a.get_future();
    swap(a, b);
    b.set_value(5);
    EXPECT_EQ(fa.get(), 5);
    static_assert(std::uses_allocator_v<promise<int>, std::allocator<int>>);
    static_assert(!std::is_copy_constructible_v<promise<int>>);
    static_assert(!std::is_copy_constructible_v<future<int>>);
    static_assert(std::is_nothrow_move_constructible_v<future<int>>);
  });
}

TEST(shared_future, all_waiters_get_it) {
  runtime rt(with_workers(4));
  rt.run([] {
    promise<std::string> p;
    shared_future<std::string> f = p.get_future().share();
    std::vector<thread> threads;
    std::atomic<int> right{0};
    for (int i = 0; i < 50; ++i) {
      threads.emplace_back([f, &right] {
        if (f.get() == "hello") ++right;
      });
    }
    std::thread outside([f, &right] {
      if (f.get() == "hello") ++right;
    });
    p.set_value("hello");
    for (thread& t : threads) t.join();
    outside.join();
    EXPECT_EQ(right, 51);
    EXPECT_EQ(&f.get(), &f.get());
    promise<void> fails;
    shared_future<void> g = fails.get_future();
    fails.set_exception(std::make_exception_ptr(std::logic_error("x")));
    EXPECT_THROW(g.get(), std::logic_error);
    EXPECT_THROW(g.get(), std::logic_error);
    EXPECT_TRUE(g.valid());
  });
}

// Ticks of 100 ns since 1601, as some file systems count.
struct since_1601 {
  using rep = std::int64_t;
  using period = std::ratio<1, 10'000'000>;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<since_1601>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static time_point now() {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    return time_point(std::chrono::floor<duration>(since_1970) + 11'644'473'600s);
  }
};

// As hardware counts, without a sign: what lies before now is not so far from it.
struct counter_of_us {
  using rep = std::uint64_t;
  using period = std::micro;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<counter_of_us>;
  [[maybe_unused]] static constexpr bool is_steady = true;
  static time_point now() {
    const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
    return time_point(std::chrono::floor<duration>(since_boot));
  }
};

TEST(future, timed_waits) {
  runtime rt(with_workers(1));
  rt.run([] {
    promise<int> p;
    auto f = p.get_future();
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(f.wait_for(2ms), future_status::timeout);
    EXPECT_GE(std::chrono::steady_clock::now() - began, 2ms);
    EXPECT_EQ(f.wait_until(std::chrono::system_clock::now() + 2ms), future_status::timeout);
    EXPECT_EQ(f.wait_until(std::chrono::steady_clock::now() - 1h), future_status::timeout);
    thread t([&] { p.set_value(1); });
    EXPECT_EQ(f.wait_for(24h), future_status::ready);
    t.join();
    using steady = std::chrono::steady_clock;
    using by_hours = std::chrono::time_point<steady, std::chrono::hours>;
    promise<int> never;
    const future<int> g = never.get_future();
    EXPECT_EQ(g.wait_until(steady::time_point::min()), future_status::timeout);
    EXPECT_EQ(g.wait_until(std::chrono::system_clock::time_point::min()), future_status::timeout);
    EXPECT_EQ(g.wait_until(steady::time_point()), future_status::timeout);
    // A quotient by 0, say.
    const std::chrono::duration<double> no_number(std::numeric_limits<double>::quiet_NaN());
    EXPECT_EQ(g.wait_for(no_number), future_status::timeout);
    EXPECT_EQ(detail::nanoseconds_in(no_number).count(), 0);
    EXPECT_EQ(detail::deadline_at(steady::time_point::max()), INT64_MAX);
    EXPECT_EQ(detail::deadline_at(std::chrono::system_clock::time_point::max()), INT64_MAX);
    EXPECT_EQ(detail::deadline_at(by_hours::max()), INT64_MAX);
    EXPECT_FALSE(detail::has_come(by_hours::max()));
    EXPECT_FALSE(detail::has_come(std::chrono::sys_seconds::max()));
    EXPECT_TRUE(detail::has_come(by_hours::min()));
    EXPECT_TRUE(detail::has_come(steady::now()));
    const auto in_an_hour = since_1601::now() + 1h;
    EXPECT_FALSE(detail::has_come(in_an_hour));
    EXPECT_LT(detail::deadline_at(in_an_hour), INT64_MAX);
    EXPECT_TRUE(detail::has_come(since_1601::now()));
    EXPECT_EQ(g.wait_until(since_1601::now() + 2ms), future_status::timeout);
    EXPECT_LE(detail::deadline_at(counter_of_us::now() - 1ms), detail::deadline_now());
    EXPECT_EQ(g.wait_until(counter_of_us::now() - 1ms), future_status::timeout);
    const std::int64_t passed = detail::deadline_at(by_hours::min());
    EXPECT_LE(passed, detail::deadline_now());
    const auto soon = steady::now() + 1h;
    const std::int64_t ns = soon.time_since_epoch() / 1ns;
    EXPECT_NEAR(static_cast<double>(detail::deadline_at(soon)), static_cast<double>(ns), 600e9);
  });
}

TEST(future, calls_are_made_for_who_is_outside_a_runtime) {
  const auto asks = [] { return detail::this_worker().owner != nullptr; };
  EXPECT_FALSE(asks());
  EXPECT_TRUE(strata::async(launch::async, asks).get());
  EXPECT_TRUE(strata::async(asks).get());
  EXPECT_FALSE(strata::async(launch::deferred, asks).get());
}

TEST(packaged_task, calls_and_resets) {
  runtime rt(with_workers(2));
  rt.run([] {
    packaged_task<int(int, std::unique_ptr<int>)> task(
        [](int a, std::unique_ptr<int> b) { return a + *b; });
    auto f = task.get_future();
    thread t(std::ref(task), 1, std::make_unique<int>(2));
    EXPECT_EQ(f.get(), 3);
    t.join();
    expect_code(future_errc::promise_already_satisfied, [&] { task(1, std::make_unique<int>(2)); });
    task.reset();
    f = task.get_future();
    task(3, std::make_unique<int>(4));
    EXPECT_EQ(f.get(), 7);

    packaged_task<void()> throws([] { throw std::runtime_error("x"); });
    auto g = throws.get_future();
    EXPECT_NO_THROW(throws());
    EXPECT_THROW(g.get(), std::runtime_error);

    packaged_task<int&()> refers([x = 0]() mutable -> int& { return x; });
    packaged_task<int&()> other;
    swap(refers, other);
    EXPECT_FALSE(refers.valid());
    auto h = other.get_future();
    other();
    EXPECT_EQ(h.get(), 0);
  });
}

TEST(async, in_a_thread) {
  runtime rt(with_workers(2));
  rt.run([] {
    auto f = strata::async(
        launch::async, [](int a) { return std::pair(a, this_thread::get_id()); }, 5);
    const auto [value, id] = f.get();
    EXPECT_EQ(value, 5);
    EXPECT_NE(id, this_thread::get_id());
    auto g = strata::async([](const std::string& s) -> std::string { throw std::runtime_error(s); },
                           "gone");
    EXPECT_THROW(g.get(), std::runtime_error);
    std::vector<future<long>> all;
    for (long i = 0; i < 200; ++i) all.push_back(strata::async([i] { return i; }));
    long sum = 0;
    for (auto& a : all) sum += a.get();
    EXPECT_EQ(sum, 19900);
  });
}

TEST(async, its_last_future_waits_for_the_thread) {
  runtime rt(with_workers(2));
  rt.run([] {
    std::atomic<bool> ended{false};
    {
      auto f = strata::async(launch::async, [&] {
        for (int i = 0; i < 100; ++i) this_thread::yield();
        ended = true;
      });
      (void)f.wait_for(0s);
    }
    EXPECT_TRUE(ended);
    thread_specific_ptr<tracked> mine;
    const int before = tracked::living();
    auto f = strata::async(launch::async, [&] { mine.reset(new tracked(1)); });
    f.wait();
    EXPECT_EQ(tracked::living(), before);  // the thread has ended, not only the call
  });
}

// A call that is over when this is made, of a thread that has a value whose end takes until it is
// let go.
struct slow_to_end {
  counting_semaphore<> ends{0};
  counting_semaphore<> goes_on{0};
  std::atomic<bool> ended{false};
  thread_specific_ptr<slow_to_end> mine{[](slow_to_end* v) {
    v->ends.release();
    v->goes_on.acquire();
    v->ended = true;
  }};
  shared_future<void> f = strata::async(launch::async, [this] { mine.reset(this); }).share();
  slow_to_end() { ends.acquire(); }
};

TEST(async, who_waits_for_a_time_waits_for_the_thread_too) {
  runtime rt(with_workers(2));
  rt.run([] {
    slow_to_end value;
    const shared_future<void>& f = value.f;
    EXPECT_EQ(f.wait_for(0s), future_status::timeout);
    EXPECT_EQ(f.wait_until(std::chrono::steady_clock::now() + 1ms), future_status::timeout);
    future_status of_other = future_status::timeout;
    thread other([&] { of_other = f.wait_for(1h); });
    value.goes_on.release();
    EXPECT_EQ(f.wait_for(1h), future_status::ready);
    EXPECT_TRUE(value.ended);
    other.join();
    EXPECT_EQ(of_other, future_status::ready);
    EXPECT_EQ(f.wait_for(0s), future_status::ready);
    f.get();
  });
}

struct waits_for_a_future : threaded {
  shared_future<void>* what;
  slot_ptr done;
  bool* refused;
  void start() {
    try {
      (void)what->wait_for(0s);
    } catch (const misuse_error&) {
      *refused = true;
    }
    sync(done);
    terminate();
  }
};

// Who could not wait has not joined it.
TEST(async, a_wait_that_is_refused_leaves_the_thread_to_the_next) {
  // One worker: who is to let it end comes only when somebody waits.
  runtime rt(with_workers(1));
  rt.run([] {
    slow_to_end value;
    bool refused = false;
    completion done;
    token<waits_for_a_future>(&value.f, done.sptr(), &refused);
    done.wait();
    EXPECT_TRUE(refused) << "the thread has not ended";
    thread later([&] { value.goes_on.release(); });
    value.f = {};
    EXPECT_TRUE(value.ended);
    later.join();
  });
}

TEST(async, deferred) {
  runtime rt(with_workers(2));
  rt.run([] {
    int calls = 0;
    auto f = strata::async(launch::deferred, [&] {
      ++calls;
      return this_thread::get_id();
    });
    EXPECT_EQ(f.wait_for(1h), future_status::deferred);
    EXPECT_EQ(f.wait_until(std::chrono::steady_clock::now()), future_status::deferred);
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(f.get(), this_thread::get_id());
    EXPECT_EQ(calls, 1);
    {
      auto never = strata::async(launch::deferred, [&] { ++calls; });
    }
    EXPECT_EQ(calls, 1);
    // One of many waiters makes the call.
    std::atomic<int> made{0};
    shared_future<int> shared = strata::async(launch::deferred, [&] {
                                  this_thread::yield();
                                  return ++made;
                                }).share();
    std::vector<thread> threads;
    for (int i = 0; i < 20; ++i) threads.emplace_back([shared] { EXPECT_EQ(shared.get(), 1); });
    for (thread& t : threads) t.join();
    EXPECT_EQ(made, 1);
    EXPECT_EQ(shared.wait_for(0s), future_status::ready);
  });
}

void expect_exit_with_7(void* (*function)(void*), void* argument) {
  pthread_t t{};
  ASSERT_EQ(strata_pthread_create(&t, nullptr, function, argument), 0);
  void* result = nullptr;
  ASSERT_EQ(strata_pthread_join(t, &result), 0);
  EXPECT_EQ(reinterpret_cast<std::intptr_t>(result), 7);
}

int exits_with_7() { strata_pthread_exit(reinterpret_cast<void*>(std::intptr_t{7})); }

TEST(packaged_task, a_pthread_that_exits_breaks_its_promise) {
  runtime rt(with_workers(2));
  rt.run([] {
    packaged_task<int()> task(&exits_with_7);
    future<int> f = task.get_future();
    const auto call = [](void* t) -> void* {
      (*static_cast<packaged_task<int()>*>(t))();
      return nullptr;
    };
    expect_exit_with_7(call, &task);
    expect_code(future_errc::broken_promise, [&] { f.get(); });
  });
}

TEST(async, a_pthread_that_exits_in_a_deferred_call_breaks_its_promise) {
  runtime rt(with_workers(2));
  rt.run([] {
    shared_future<int> f = strata::async(launch::deferred, &exits_with_7).share();
    const auto wait = [](void* awaited) -> void* {
      static_cast<shared_future<int>*>(awaited)->wait();
      return nullptr;
    };
    expect_exit_with_7(wait, &f);
    expect_code(future_errc::broken_promise, [&] { f.get(); });
  });
}

// The waiter ends the promise at once, while set_value() is still on its way out.
TEST(future, the_state_may_go_as_soon_as_it_is_ready) {
  runtime rt(with_workers(4));
  rt.run([] {
    for (int i = 0; i < scaled(20'000, 2'000); ++i) {
      auto p = std::make_unique<promise<int>>();
      auto f = p->get_future();
      thread t([q = p.get(), i] { q->set_value(i); });
      ASSERT_EQ(f.get(), i);
      t.join();
      p.reset();
    }
  });
}

}  // namespace
}  // namespace strata::test
