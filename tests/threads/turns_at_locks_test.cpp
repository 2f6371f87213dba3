// SPDX-License-Identifier: Apache-2.0
// Whoever leaves a lock wakes no more than can have it, and everybody has a turn.
#include <chrono>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "../sched/support.hpp"
#include "strata/mutex.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

// Called in a runtime of one worker: how often stacks have waited while `rest` ran, after `threads`
// that `body` had come to wait.
template <class Body, class Rest>
std::uint64_t waits_while(runtime& rt, int threads, const Body& body, const Rest& rest) {
  std::vector<thread> all;
  int come = 0;  // each waits when the next one comes
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      ++come;
      body(i);
    });
  }
  while (come < threads) this_thread::yield();
  const std::uint64_t before = rt.stats().total().suspensions;
  rest();
  for (thread& t : all) t.join();
  return rt.stats().total().suspensions - before;
}

constexpr int many = scaled(500, 200);

TEST(shared_mutex, wakes_one_writer_at_a_time) {
  runtime rt(with_workers(1));
  rt.run([&] {
    shared_mutex m;
    m.lock();
    const std::uint64_t waits = waits_while(
        rt, many,
        [&](int) {
          const std::lock_guard lock(m);
          this_thread::yield();  // those that were woken look
        },
        [&] { m.unlock(); });
    EXPECT_LE(waits, 3U * many);
  });
}

TEST(shared_mutex, a_writer_that_gives_up_wakes_no_other) {
  runtime rt(with_workers(1));
  rt.run([&] {
    shared_timed_mutex m;
    m.lock();
    int given_up = 0;
    binary_semaphore all_gave_up(0);
    const std::uint64_t waits = waits_while(
        rt, many,
        [&](int i) {
          EXPECT_FALSE(m.try_lock_for(10ms + i * 50us));
          if (++given_up == many) all_gave_up.release();
        },
        [&] { all_gave_up.acquire(); });
    m.unlock();
    EXPECT_LE(waits, 4U * many);
  });
}

// Others want what one thread takes again at once, and with which it lets others run: how often it
// has had it when all of them have.
template <class Take, class Leave>
int turns_until_all_have_it(const Take& take, const Leave& leave) {
  constexpr int others = 5, turns_max = 1000;
  runtime rt(with_workers(1));
  return rt.run([&] {
    int turns = 0, got = 0;
    thread greedy([&] {
      while (got < others && turns < turns_max) {
        take();
        ++turns;
        this_thread::yield();
        leave();
      }
    });
    std::vector<thread> all;
    for (int i = 0; i < others; ++i) {
      all.emplace_back([&] {
        take();
        ++got;
        leave();
      });
    }
    greedy.join();
    for (thread& t : all) t.join();
    return turns;
  });
}

TEST(shared_mutex, is_not_kept_by_who_takes_it_again_at_once) {
  shared_mutex m;
  EXPECT_LT(turns_until_all_have_it([&] { m.lock(); }, [&] { m.unlock(); }), 100);
}

TEST(timed_mutex, is_not_kept_by_who_takes_it_again_at_once) {
  timed_mutex m;
  EXPECT_LT(turns_until_all_have_it([&] { EXPECT_TRUE(m.try_lock_for(24h)); }, [&] { m.unlock(); }),
            100);
}

TEST(recursive_timed_mutex, is_not_kept_by_who_takes_it_again_at_once) {
  recursive_timed_mutex m;
  EXPECT_LT(turns_until_all_have_it([&] { EXPECT_TRUE(m.try_lock_for(24h)); }, [&] { m.unlock(); }),
            100);
}

TEST(semaphore, is_not_kept_by_who_takes_it_again_at_once) {
  counting_semaphore<1> one(1);
  EXPECT_LT(turns_until_all_have_it([&] { one.acquire(); }, [&] { one.release(); }), 100);
}

TEST(call_once, a_call_that_throws_lets_one_other_try) {
  runtime rt(with_workers(1));
  rt.run([&] {
    once_flag once;
    int tried = 0;
    const std::uint64_t waits = waits_while(
        rt, many,
        [&](int) {
          try {
            call_once(once, [&] {
              this_thread::yield();  // those that were woken look
              ++tried;
              throw std::runtime_error("again");
            });
          } catch (const std::runtime_error&) {
          }
        },
        [] {});
    EXPECT_EQ(tried, many);
    EXPECT_LE(waits, 3U * many);
  });
}

}  // namespace
}  // namespace strata::test
