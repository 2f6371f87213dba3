// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <vector>

#include "../sched/support.hpp"
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
