// SPDX-License-Identifier: Apache-2.0
// Who waits at an address is of one or more kinds, and wakers choose among them.
#include "strata/detail/parking.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "../sched/support.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/thread.hpp"
#include "threads/waiter.hpp"

namespace strata::test {
namespace {

using detail::unpark;
using detail::unparked;

constexpr std::uint32_t first_kind = 1;
constexpr std::uint32_t second_kind = 2;
constexpr std::uint32_t third_kind = 4;
constexpr unsigned each = 40;  // more than are woken in one portion

void let_others() {
  this_thread::yield();
  std::this_thread::yield();  // outside a runtime
}

// Those of the second kind are of the third, too, and wait between those of the first.
struct crowd {
  const char address = 0;
  std::atomic<unsigned> left_of_first{0};
  std::atomic<unsigned> left_of_second{0};

  void wait(std::uint32_t kinds) {
    EXPECT_EQ(detail::park({.what = "test", .address = &address, .kinds = kinds}), unparked::woken);
    ++(kinds == first_kind ? left_of_first : left_of_second);
  }
  // Until so many have been there to be woken.
  void wake(unsigned wanted, unsigned at_a_time, std::uint32_t kinds) {
    for (unsigned woken = 0; woken < wanted;) {
      const unsigned n = unpark(&address, at_a_time, kinds);
      EXPECT_LE(n, at_a_time);
      woken += n;
      if (n == 0) let_others();
    }
  }
  void wake_both() {
    wake(each / 2, 1, second_kind);
    wake(each - each / 2, UINT32_MAX, third_kind);
    while (left_of_second != each) let_others();
    EXPECT_EQ(unpark(&address, UINT32_MAX, second_kind | third_kind), 0U);
    EXPECT_EQ(left_of_first, 0U);
    wake(each, UINT32_MAX, first_kind);
    EXPECT_EQ(unpark(&address, UINT32_MAX), 0U);
  }
};

TEST(parking, wakes_those_of_a_kind) {
  for (const unsigned workers : {1U, 2U, 4U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      crowd c;
      std::vector<thread> all;
      for (unsigned i = 0; i < each; ++i) {
        all.emplace_back([&c] { c.wait(first_kind); });
        all.emplace_back([&c] { c.wait(second_kind | third_kind); });
      }
      c.wake_both();
      for (thread& t : all) t.join();
      EXPECT_EQ(c.left_of_first, each);
    });
  }
}

TEST(parking, wakes_threads_from_outside_of_a_kind) {
  crowd c;
  std::vector<std::thread> all;
  for (unsigned i = 0; i < each; ++i) {
    all.emplace_back([&c] { c.wait(first_kind); });
    all.emplace_back([&c] { c.wait(second_kind | third_kind); });
  }
  c.wake_both();
  for (std::thread& t : all) t.join();
  EXPECT_EQ(c.left_of_first, each);
}

// Each is found by its place, whoever waits there before it, for as long as it waits.
TEST(parking, wakes_who_waits_with_a_place) {
  for (const unsigned workers : {1U, 2U, 4U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      const char address = 0;
      std::vector<detail::parked_place> places(each);
      std::atomic<unsigned> parked{0};
      std::atomic<unsigned> last{each};
      std::vector<thread> all;
      for (unsigned i = 0; i < each; ++i) {
        all.emplace_back([&, i] {
          EXPECT_EQ(
              detail::park({.what = "test",
                            .address = &address,
                            .then = [](void* n) { ++*static_cast<std::atomic<unsigned>*>(n); },
                            .then_argument = &parked,
                            .place = &places[i]}),
              unparked::woken);
          last = i;
        });
      }
      while (parked != each) let_others();
      for (unsigned i = each; i-- != 1;) {  // who came last, first
        EXPECT_NE(places[i].here, nullptr);
        detail::unpark_at(&address, places[i]);
        while (last != i) let_others();
        EXPECT_EQ(places[i].here, nullptr);
        detail::unpark_at(&address, places[i]);  // nobody
      }
      EXPECT_NE(places[0].here, nullptr);
      EXPECT_EQ(unpark(&address, UINT32_MAX), 1U);
      EXPECT_EQ(places[0].here, nullptr);
      for (thread& t : all) t.join();
      // Who gives up leaves it as well.
      EXPECT_EQ(detail::park({.what = "test",
                              .address = &address,
                              .deadline_ns = detail::deadline_now() + 1000,
                              .place = &places[0]}),
                unparked::timed_out);
      EXPECT_EQ(places[0].here, nullptr);
    });
  }
}

// Three that wait for ever when their runtime ends.
void leave_behind_at(counting_semaphore<>& semaphore) {
  runtime rt(with_workers(2));
  rt.run([&] {
    for (int i = 0; i < 3; ++i) {
      thread([&] {
        semaphore.acquire();
        ADD_FAILURE() << "its runtime has ended";
      }).detach();
    }
  });
}

TEST(parking, finds_nobody_whose_runtime_has_ended) {
  for (int round = 0; round < 20; ++round) {
    counting_semaphore<> left(0);
    leave_behind_at(left);
    left.release(3);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(left.try_acquire());
  }
}

// Nor does anybody pass them who waits at an address of the same queue.
TEST(parking, passes_nobody_whose_runtime_has_ended) {
  counting_semaphore<> left(0);
  leave_behind_at(left);
  runtime rt(with_workers(2));
  rt.run([] {
    std::vector<mutex> all(5000);  // more than there are queues
    for (mutex& m : all) {
      std::unique_lock lock(m);
      thread waits([&] { const std::lock_guard mine(m); });
      while (!detail::is_awaited(&m)) this_thread::yield();
      lock.unlock();
      waits.join();
    }
  });
}

// One is woken while its runtime ends: it goes on or does not, but is not looked for where it was.
TEST(parking, wakes_while_a_runtime_ends) {
  for (int round = 0; round < scaled(2000, 200); ++round) {
    counting_semaphore<> left(0);
    std::atomic<bool> begins{false};
    std::thread outside;
    {
      runtime rt(with_workers(1));
      rt.run([&] {
        for (int i = 0; i < 40; ++i) thread([&] { left.acquire(); }).detach();
      });
      outside = std::thread([&] {
        begins = true;
        left.release(40);
      });
      spin_until(begins);
    }
    outside.join();
  }
}

}  // namespace
}  // namespace strata::test
