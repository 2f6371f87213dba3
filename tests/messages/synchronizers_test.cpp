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

}  // namespace
}  // namespace strata
