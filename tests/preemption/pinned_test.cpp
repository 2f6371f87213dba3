// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>
#include <vector>

#include "../sched/support.hpp"
#include "sched/scheduler.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

unsigned here() { return detail::this_worker().id; }

TEST(pinned, threads_stay_on_their_worker) {
  runtime rt(with_workers(4));
  rt.run([] {
    mutex m;
    condition_variable turn;
    barrier<> all(20);
    std::atomic<int> moved{0};
    std::atomic<int> ready{0};
    std::vector<thread> makers;
    std::vector<std::vector<thread>> threads(4);
    for (std::size_t k = 0; k < threads.size(); ++k) {
      makers.emplace_back([&, k] {
        for (int i = 0; i < 5; ++i) {
          threads[k].emplace_back(thread_attributes{.pinned = true}, [&] {
            const unsigned home = here();
            const auto look = [&] { moved += here() != home ? 1 : 0; };
            for (int round = 0; round < 20; ++round) {
              this_thread::yield();
              look();
              all.arrive_and_wait();
              look();
              {
                std::unique_lock lock(m);
                turn.wait_for(lock, 100us);
              }
              look();
              this_thread::sleep_for(10us);
              look();
              thread([] {}).join();
              look();
            }
          });
        }
        // Nobody goes on before each has a worker for itself.
        ++ready;
        if (ready_threads_are_stolen()) spin_until([&] { return ready == 4; });
      });
    }
    for (thread& t : makers) t.join();
    for (auto& group : threads)
      for (thread& t : group) t.join();
    EXPECT_EQ(moved, 0);
  });
}

// Whoever has run for long goes behind those that others have made ready meanwhile.
TEST(pinned, threads_that_were_woken_go_on_before_one_that_gives_way) {
  runtime rt(with_workers(1));
  rt.run([] {
    binary_semaphore go(0);
    int begun = 0;
    int gone_on = 0;
    const thread_attributes pinned{.pinned = true};
    std::vector<thread> woken;
    for (int i = 0; i < 5; ++i) {
      woken.emplace_back(pinned, [&] {
        ++begun;
        go.acquire();
        ++gone_on;
        go.release();
      });
    }
    while (begun < 5) this_thread::yield();
    thread computes(pinned, [&] {
      std::thread([&] { go.release(); }).join();
      detail::this_place().give_way();
      EXPECT_EQ(gone_on, 1);
    });
    computes.join();
    for (thread& t : woken) t.join();
  });
}

TEST(priority, above_zero_begins_first) {
  runtime rt(with_workers(1));
  rt.run([] {
    std::vector<int> order;
    thread a([&] { order.push_back(1); });
    thread b(thread_attributes{.priority = 1}, [&] { order.push_back(2); });
    a.join();
    b.join();
    EXPECT_EQ(order, (std::vector<int>{2, 1}));
  });
}

}  // namespace
}  // namespace strata::test
