// SPDX-License-Identifier: Apache-2.0
// Waits that the loss of a node ends: what was to wake a waiter and the loss at the same time.
#include "messages/common_waits.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <exception>

#include "../sched/support.hpp"
#include "strata/error.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"
#include "threads/waiter.hpp"

namespace strata {
namespace {

using detail::parking;
using detail::semaphore_core;
using detail::unparked;
using messages::common_waits;
using test::with_workers;

std::exception_ptr loss_of_a_node() {
  return std::make_exception_ptr(node_lost_error(3, "node 3 is lost"));
}

common_waits* waits_here = nullptr;
unparked park_here(const parking& how) { return waits_here->park(how); }

// False: the loss came first.
bool has_acquired(semaphore_core& units) {
  try {
    return units.acquire_by(&park_here, parking::never) == unparked::woken;
  } catch (const node_lost_error& e) {
    EXPECT_EQ(e.node(), 3);
    return false;
  }
}

void await_waiters_of(const semaphore_core& units) {
  while (!detail::is_awaited(&units)) this_thread::yield();
}

class common_wait : public testing::TestWithParam<unsigned> {
 protected:
  template <class F>
  static void run(F&& f) {
    runtime rt(with_workers(GetParam()));
    rt.run([&] {
      common_waits all;
      waits_here = &all;
      f(all);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(workers, common_wait, testing::Values(1U, 2U, 4U, 8U));

TEST_P(common_wait, ends_as_others_do_while_all_nodes_are_there) {
  run([](common_waits&) {
    semaphore_core units(0);
    std::atomic<int> got{0};
    std::deque<thread> threads;
    for (int i = 0; i < 20; ++i) threads.emplace_back([&] { got += has_acquired(units) ? 1 : 0; });
    await_waiters_of(units);
    for (int i = 0; i < 20; ++i) units.release(1);
    for (thread& t : threads) t.join();
    EXPECT_EQ(got, 20);
    EXPECT_EQ(units.count(), 0U);
  });
}

TEST_P(common_wait, is_ended_by_a_loss_and_does_not_begin_afterwards) {
  run([](common_waits& all) {
    std::array<semaphore_core, 3> units{semaphore_core(0), semaphore_core(0), semaphore_core(0)};
    std::atomic<int> told{0};
    std::deque<thread> threads;
    for (std::size_t i = 0; i < 60; ++i)
      threads.emplace_back([&, i] { told += has_acquired(units[i % 3]) ? 0 : 1; });
    for (const semaphore_core& u : units) await_waiters_of(u);
    EXPECT_NO_THROW(all.require_all_nodes());
    all.on_lost(loss_of_a_node());
    for (thread& t : threads) t.join();
    EXPECT_EQ(told, 60);
    EXPECT_THROW(all.require_all_nodes(), node_lost_error);
    EXPECT_FALSE(has_acquired(units[0]));
    units[0].release(1);
    EXPECT_TRUE(has_acquired(units[0])) << "it need not wait";
  });
}

// On one worker nobody runs in between.
TEST(common_waits, keep_what_they_were_woken_with_before_a_loss) {
  runtime rt(with_workers(1));
  rt.run([] {
    common_waits all;
    waits_here = &all;
    semaphore_core units(0);
    bool first_has_one = false, other_has_one = false;
    thread first([&] { first_has_one = has_acquired(units); });
    await_waiters_of(units);
    thread other([&] {
      (void)units.acquire(parking::never);  // whatever becomes of the job
      other_has_one = true;
    });
    this_thread::yield();
    units.release(1);
    all.on_lost(loss_of_a_node());
    first.join();
    EXPECT_TRUE(first_has_one);
    EXPECT_FALSE(other_has_one);
    units.release(1);
    other.join();
    EXPECT_EQ(units.count(), 0U);
  });
}

// Units go from hand to hand until the loss, and are all there afterwards.
TEST_P(common_wait, leaves_all_units_there) {
  run([](common_waits& all) {
    for (int round = 0; round < 20; ++round) {
      common_waits of_round;
      waits_here = &of_round;
      semaphore_core units(3);
      std::atomic<int> taken{0};
      std::atomic<bool> is_lost{false};
      std::deque<thread> threads;
      for (int i = 0; i < 32; ++i) {
        threads.emplace_back([&] {
          while (!is_lost && has_acquired(units)) {
            ++taken;
            this_thread::yield();
            units.release(1);
          }
        });
      }
      while (taken < 50 * (round + 1)) this_thread::yield();
      of_round.on_lost(loss_of_a_node());
      is_lost = true;
      for (thread& t : threads) t.join();
      EXPECT_EQ(units.count(), 3U);
    }
    waits_here = &all;
  });
}

}  // namespace
}  // namespace strata
