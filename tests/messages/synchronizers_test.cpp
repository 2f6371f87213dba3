// SPDX-License-Identifier: Apache-2.0
// Semaphores, locks and barriers by their handles, within one process.
#include "strata/synchronizers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <vector>

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

// More are said to be too many, and change nothing.
TEST(semaphore_handle, gives_back_no_more_than_there_can_be) {
  runtime rt(with_workers(1));
  rt.run([] {
    constexpr std::ptrdiff_t most = counting_semaphore<>::max();
    counting_semaphore<> units(1);
    semaphore_handle s(resource<counting_semaphore<>>(to_global(&units)));
    for (const std::ptrdiff_t n : {most, most + 1, PTRDIFF_MAX})
      EXPECT_THROW(s.release(n), misuse_error) << n;
    EXPECT_TRUE(s.try_acquire());
    EXPECT_FALSE(s.try_acquire());
    s.release(most);
    EXPECT_THROW(s.release(), misuse_error);
    EXPECT_TRUE(s.try_acquire());
    s.release();
    EXPECT_THROW(s.release(), misuse_error);
  });
}

// While somebody waits, or has waited, its count has marks beside it.
TEST(semaphore_handle, gives_back_as_much_as_there_can_be_while_somebody_waits) {
  runtime rt(with_workers(1));
  rt.run([] {
    constexpr std::ptrdiff_t most = counting_semaphore<>::max();
    counting_semaphore<> units(0);
    semaphore_handle s(resource<counting_semaphore<>>(to_global(&units)));
    unsigned through = 0;
    std::array<thread, 2> waiting;
    for (thread& t : waiting) {
      t = thread([&] {
        s.acquire();
        ++through;
      });
    }
    this_thread::yield();
    EXPECT_THROW(s.release(PTRDIFF_MAX), misuse_error);
    this_thread::yield();
    EXPECT_EQ(through, 0U);
    s.release(most);
    for (thread& t : waiting) t.join();
    EXPECT_EQ(through, 2U);
    EXPECT_THROW(s.release(3), misuse_error);
    s.release(2);
    EXPECT_THROW(s.release(), misuse_error);
  });
}

// Else two had it then.
TEST(lock_handle, is_unlocked_only_if_it_is_locked) {
  runtime rt(with_workers(1));
  rt.run([] {
    counting_semaphore<> unit(1);
    lock_handle l(semaphore_handle(resource<counting_semaphore<>>(to_global(&unit))));
    EXPECT_THROW(l.unlock(), misuse_error);
    EXPECT_TRUE(l.try_lock());
    EXPECT_FALSE(l.try_lock());
    l.unlock();
    EXPECT_THROW(l.unlock(), misuse_error);
    EXPECT_TRUE(l.try_lock());
    EXPECT_FALSE(l.try_lock());
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

// Though twice as many arrive as it counts, some of them in the moment in which a phase ends.
TEST(barrier_handle, counts_an_arrival_in_the_phase_that_its_token_says) {
  constexpr std::uint32_t phases = 20'000;
  constexpr unsigned threads = 4;
  runtime rt(with_workers(threads));
  std::vector<std::atomic<unsigned>> arrivals(phases);
  rt.run([&] {
    barrier<> two(2);
    const resource<barrier<>> where(to_global(&two));
    std::vector<thread> all;
    for (unsigned i = 0; i < threads; ++i) {
      all.emplace_back([&] {
        barrier_handle b(where);
        for (std::uint32_t phase = 0;;) {
          try {
            phase = b.arrive();
          } catch (const misuse_error&) {  // both have come, and the phase is just ending
            continue;
          }
          if (phase >= phases) return;
          ++arrivals[phase];
        }
      });
    }
    for (thread& t : all) t.join();
  });
  unsigned others = 0;
  for (const std::atomic<unsigned>& n : arrivals) others += n != 2 ? 1U : 0U;
  EXPECT_EQ(others, 0U) << "phases with more or fewer than two arrivals";
}

// Of two who arrive and one who drops out one is too many for the first phase, and all three try in
// the same moment: the next phase is then for one less than the one in which somebody dropped out.
TEST(barrier_handle, counts_who_drops_out_in_one_phase) {
  constexpr std::size_t rounds = 20'000;
  runtime rt(with_workers(2));
  rt.run([] {
    std::deque<barrier<>> barriers;
    for (std::size_t i = 0; i < rounds; ++i) barriers.emplace_back(2);
    std::atomic<std::size_t> dropped{0}, arrived{0};
    const auto handle_of = [&](std::size_t round) {
      return barrier_handle(resource<barrier<>>(to_global(&barriers[round])));
    };
    const auto meet = [](std::atomic<std::size_t>& mine, const std::atomic<std::size_t>& other,
                         std::size_t round) {
      mine = round;
      while (other < round) this_thread::yield();
    };
    // Refused while a phase is just ending.
    const auto at_last = [](const auto& come) {
      for (;;) {
        try {
          return come();
        } catch (const misuse_error&) {
        }
      }
    };
    thread drops_out([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        meet(dropped, arrived, i);
        at_last([&] { handle_of(i).arrive_and_drop(); });
      }
    });
    std::vector<barrier_handle::arrival_token> second(rounds);
    for (std::size_t i = 0; i < rounds; ++i) {
      meet(arrived, dropped, i);
      const auto arrive = [&] { return handle_of(i).arrive(); };
      EXPECT_EQ(at_last(arrive), 0U);
      second[i] = at_last(arrive);
    }
    drops_out.join();
    unsigned wrong = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      // Who drops out came in the first phase or in the second, which one is missing in then.
      const barrier_handle::arrival_token now = second[i] == 0 ? 1 : 2;
      if (handle_of(i).arrive() != now || handle_of(i).arrive() != now + 1) ++wrong;
    }
    EXPECT_EQ(wrong, 0U) << "rounds in which a phase was for more or fewer than are left";
  });
}

}  // namespace
}  // namespace strata
