// SPDX-License-Identifier: Apache-2.0
// Semaphores, locks and barriers by their handles, within one process.
#include "strata/synchronizers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "../sched/support.hpp"
#include "strata/thread.hpp"

namespace strata {
namespace {

using test::with_workers;

TEST(semaphore_handle, gives_back_no_negative_number) {
  runtime rt(with_workers(1));
  rt.run([] {
    counting_semaphore<> units(1);
    semaphore_handle s(resource<counting_semaphore<>>(to_global(&units)));
    EXPECT_THROW(s.release(-1), misuse_error);
    s.release(0);
    EXPECT_TRUE(s.try_acquire());
    EXPECT_FALSE(s.try_acquire());
  });
}

TEST(semaphore_handle, waits_until_a_time_and_no_longer) {
  runtime rt(with_workers(1));
  rt.run([] {
    using clock = std::chrono::steady_clock;
    counting_semaphore<> units(2);
    semaphore_handle s(resource<counting_semaphore<>>(to_global(&units)));
    lock_handle l(s);
    EXPECT_TRUE(s.try_acquire_until(clock::now() - std::chrono::hours(1)));
    EXPECT_TRUE(l.try_lock_until(clock::now() + std::chrono::hours(1)));
    const auto time = clock::now() + std::chrono::milliseconds(1);
    EXPECT_FALSE(s.try_acquire_until(time));
    EXPECT_FALSE(l.try_lock_until(time));
    EXPECT_GE(clock::now(), time);
    l.unlock();
    EXPECT_TRUE(s.try_acquire());
  });
}

// Who has dropped out is not waited for any more.
TEST(barrier_handle, counts_one_less_for_who_drops_out) {
  runtime rt(with_workers(2));
  rt.run([] {
    barrier<> both(2);
    barrier_handle b(resource<barrier<>>(to_global(&both)));
    std::atomic<bool> passed{false};
    thread other([&] {
      b.arrive_and_wait();
      passed = true;
      b.arrive_and_wait();  // alone
      b.arrive_and_wait();
    });
    this_thread::yield();
    EXPECT_FALSE(passed);
    b.arrive_and_drop();
    other.join();
    EXPECT_TRUE(passed);
  });
}

// Who has waited in vain has arrived, and may wait for the same phase again.
TEST(barrier_handle, waits_for_a_phase_until_a_time_and_no_longer) {
  runtime rt(with_workers(2));
  rt.run([] {
    using clock = std::chrono::steady_clock;
    barrier<> all(3);
    barrier_handle b(resource<barrier<>>(to_global(&all)));
    const barrier_handle::arrival_token first = b.arrive(2);
    const auto time = clock::now() + std::chrono::milliseconds(1);
    EXPECT_FALSE(b.wait_until(first, time));
    EXPECT_GE(clock::now(), time);
    EXPECT_FALSE(b.wait_for(first, std::chrono::seconds(0)));
    thread last([&] { b.arrive_and_wait(); });
    EXPECT_TRUE(b.wait_for(first, std::chrono::hours(1)));
    last.join();
    EXPECT_TRUE(b.wait_for(first, std::chrono::seconds(0)));
    EXPECT_TRUE(b.wait_until(first, std::chrono::system_clock::now()));
    b.wait(first);
    const barrier_handle::arrival_token second = b.arrive();
    EXPECT_FALSE(b.wait_for(second, std::chrono::milliseconds(1)));
    thread others([&] { (void)b.arrive(2); });
    b.wait(second);
    others.join();
  });
}

// Its phase goes on as if they had not come.
TEST(barrier_handle, refuses_more_than_are_missing) {
  runtime rt(with_workers(2));
  rt.run([] {
    barrier<> all(3);
    barrier_handle b(resource<barrier<>>(to_global(&all)));
    for (const std::ptrdiff_t n :
         {std::ptrdiff_t{4}, std::ptrdiff_t{0}, std::ptrdiff_t{-1}, PTRDIFF_MIN, PTRDIFF_MAX})
      EXPECT_THROW((void)b.arrive(n), misuse_error) << n;
    const barrier_handle::arrival_token first = b.arrive(2);
    EXPECT_THROW((void)b.arrive(2), misuse_error);
    EXPECT_FALSE(b.wait_for(first, std::chrono::seconds(0)));
    b.arrive_and_drop();
    b.wait(first);
    EXPECT_THROW((void)b.arrive(3), misuse_error);
    b.arrive_and_drop();
    b.arrive_and_drop();
    EXPECT_THROW(b.arrive_and_drop(), misuse_error);  // nobody is left
    EXPECT_THROW(b.arrive_and_wait(), misuse_error);
    EXPECT_THROW((void)b.arrive(), misuse_error);
  });
}

}  // namespace
}  // namespace strata
