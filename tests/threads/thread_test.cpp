// SPDX-License-Identifier: Apache-2.0
// thread, jthread and this_thread keep the standard's promises.
#include "strata/thread.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../common/recurse_for_ever.hpp"
#include "../sched/support.hpp"
#include "sched/scheduler.hpp"
#include "strata/error.hpp"
#include "strata/pthread.h"
#include "thread_support.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

class threads_on : public leaves_no_frame {};
INSTANTIATE_TEST_SUITE_P(workers, threads_on, ::testing::Values(1, 2, 4, 8),
                         ::testing::PrintToStringParamName());

TEST_P(threads_on, arguments_and_results) {
  rt.run([] {
    int sum = 0;
    auto owned = std::make_unique<int>(3);
    thread t([&sum](int a, std::unique_ptr<int> b,
                    const std::string& c) { sum = a + *b + static_cast<int>(c.size()); },
             1, std::move(owned), "four");
    EXPECT_TRUE(t.joinable());
    EXPECT_NE(t.get_id(), thread::id());
    t.join();
    EXPECT_EQ(sum, 8);
    EXPECT_FALSE(t.joinable());
    EXPECT_EQ(t.get_id(), thread::id());
    struct counter {
      int calls = 0;
      void call(int n) { calls += n; }
    } c;
    thread member(&counter::call, &c, 2);
    member.join();
    thread reference(&counter::call, std::ref(c), 3);
    reference.join();
    EXPECT_EQ(c.calls, 5);
  });
}

TEST_P(threads_on, moves_and_swaps) {
  rt.run([] {
    static_assert(!std::is_copy_constructible_v<thread>);
    std::atomic<int> ran{0};
    thread a([&] { ++ran; });
    const thread::id id = a.get_id();
    thread b(std::move(a));
    EXPECT_FALSE(a.joinable());
    EXPECT_EQ(b.get_id(), id);
    swap(a, b);
    EXPECT_EQ(a.get_id(), id);
    b = std::move(a);
    b.join();
    EXPECT_EQ(ran, 1);
  });
}

TEST_P(threads_on, joining_what_cannot_be_joined) {
  rt.run([] {
    thread none;
    EXPECT_FALSE(none.joinable());
    expect_code(std::errc::invalid_argument, [&] { none.join(); });
    expect_code(std::errc::invalid_argument, [&] { none.detach(); });
    thread twice([] {});
    twice.join();
    expect_code(std::errc::invalid_argument, [&] { twice.join(); });
    thread itself;
    binary_semaphore go(0);
    itself = thread([&] {
      go.acquire();
      expect_code(std::errc::resource_deadlock_would_occur, [&] { itself.join(); });
    });
    go.release();
    itself.join();
    thread detached([] {});
    detached.detach();
    EXPECT_FALSE(detached.joinable());
    expect_code(std::errc::invalid_argument, [&] { detached.join(); });
  });
}

TEST_P(threads_on, detached_ones_end_by_themselves) {
  static std::atomic<int> ended{0};
  ended = 0;
  rt.run([] {
    for (int i = 0; i < 100; ++i) {
      thread([i, object = tracked(i)] {
        for (int k = 0; k < i % 5; ++k) this_thread::yield();
        ++ended;
      }).detach();
    }
  });
  rt.wait_idle();
  EXPECT_EQ(ended, 100);
  EXPECT_EQ(tracked::living(), 0);
}

// Also what one worker leaves to another while that one's guest goes.
TEST_P(threads_on, none_is_forgotten_when_a_region_ends) {
  static std::atomic<int> ended{0};
  ended = 0;
  constexpr int rounds = scaled(300, 50);
  for (int round = 1; round <= rounds; ++round) {
    rt.run([] {
      for (int i = 0; i < 20; ++i) {
        thread([i] {
          for (int k = 0; k < i % 5; ++k) this_thread::yield();
          ++ended;
        }).detach();
      }
    });
    rt.wait_idle();
    ASSERT_EQ(ended, 20 * round);
  }
}

TEST_P(threads_on, what_a_thread_did_is_visible_after_join) {
  rt.run([] {
    for (int round = 0; round < 50; ++round) {
      std::vector<int> written(32, 0);
      std::vector<thread> threads;
      for (int& w : written) threads.emplace_back([&w, round] { w = round + 1; });
      for (thread& t : threads) t.join();
      for (const int w : written) ASSERT_EQ(w, round + 1);
    }
  });
}

TEST(join, of_one_that_joins_the_caller_is_refused) {
  runtime rt(with_workers(1));
  rt.run([] {
    thread a, b;
    bool is_joined = false;
    a = thread([&] {
      is_joined = true;  // before anybody else runs
      b.join();
    });
    b = thread([&] {
      while (!is_joined) this_thread::yield();
      expect_code(std::errc::resource_deadlock_would_occur, [&] { a.join(); });
    });
    a.join();
  });
}

// A join begins a thread at once where that is the next anyway, and goes on at once where nobody
// else is ready: the order is that of arrival all the same.
TEST(join, keeps_the_order_of_arrival) {
  runtime rt(with_workers(1));
  rt.run([] {
    std::string order;
    thread second, third;
    thread first([&] {
      order += '1';
      second = thread([&] {
        order += '2';
        third = thread([&] { order += '3'; });
        this_thread::yield();
        order += '4';
      });
    });
    first.join();  // begins at once; `second` is ready when it ends
    order += 'a';
    third.join();
    order += 'b';
    second.join();
    order += 'c';
    EXPECT_EQ(order, "12a34bc");

    order.clear();
    thread x([&] { order += 'x'; }), y([&] { order += 'y'; });
    y.join();  // not before x
    x.join();
    EXPECT_EQ(order, "xy");
  });
}

TEST_P(threads_on, joined_ones_may_suspend_and_move) {
  rt.run([] {
    for (int round = 0; round < 200; ++round) {
      binary_semaphore s(0);
      thread opener([&] { s.release(); });
      int passed = 0;
      thread waiting([&] {
        s.acquire();
        for (int i = 0; i < 3; ++i) this_thread::yield();
        passed = 1;
      });
      waiting.join();
      EXPECT_EQ(passed, 1);
      opener.join();
    }
  });
}

// What is in flight on the joiner's stack is none of the joined thread's.
TEST_P(threads_on, joining_while_an_exception_is_handled) {
  rt.run([] {
    try {
      throw 1;
    } catch (int) {
      thread([] {
        EXPECT_EQ(std::current_exception(), nullptr);
        EXPECT_EQ(std::uncaught_exceptions(), 0);
        try {
          throw 2;
        } catch (int two) {
          EXPECT_EQ(two, 2);
        }
      }).join();
      try {
        throw;
      } catch (int one) {
        EXPECT_EQ(one, 1);
      }
    }
  });
}

TEST_P(threads_on, functions_and_arguments_are_aligned_as_they_ask) {
  rt.run([] {
    struct alignas(128) wide {
      tracked object;
      [[nodiscard]] bool is_aligned() const {
        return reinterpret_cast<std::uintptr_t>(this) % alignof(wide) == 0;
      }
    };
    std::atomic<int> right{0};
    thread captured([&right, mine = wide{}] { right += mine.is_aligned() ? 1 : 0; });
    thread given([&right](const wide& w) { right += w.is_aligned() ? 1 : 0; }, wide{});
    captured.join();
    given.join();
    EXPECT_EQ(right, 2);
    EXPECT_EQ(tracked::living(), 0);
  });
}

TEST_P(threads_on, copying_an_argument_may_wait) {
  rt.run([] {
    struct waits_for_others {
      int others = 0;
      waits_for_others() = default;
      waits_for_others(const waits_for_others&) : others(1) {
        thread([this] { ++others; }).join();
      }
      waits_for_others(waits_for_others&&) = default;
    };
    const waits_for_others original;
    std::vector<thread> threads;
    for (int i = 0; i < 20; ++i)
      threads.emplace_back([](const waits_for_others& w) { EXPECT_EQ(w.others, 2); }, original);
    for (thread& t : threads) t.join();
  });
}

TEST_P(threads_on, functions_end_with_their_thread) {
  rt.run([] {
    std::vector<thread> threads;
    for (int i = 0; i < 20; ++i) threads.emplace_back([object = tracked(i)] { (void)object; });
    for (thread& t : threads) t.join();
    EXPECT_EQ(tracked::living(), 0);
  });
}

// Not only with join(): here the joiner waits for it.
TEST_P(threads_on, functions_and_arguments_end_before_join) {
  rt.run([] {
    struct tells {
      latch* ended;
      explicit tells(latch& l) : ended(&l) {}
      tells(tells&& other) noexcept : ended(std::exchange(other.ended, nullptr)) {}
      ~tells() {
        if (ended == nullptr) return;
        const auto me = this_thread::get_id();
        this_thread::yield();  // it is still a thread
        EXPECT_EQ(this_thread::get_id(), me);
        ended->count_down();
      }
    };
    latch functions(3), arguments(2);
    thread captured([mine = tells(functions)] {});
    thread given([](const tells&) {}, tells(arguments));
    thread exits([mine = tells(functions)] { throw detail::thread_exit{}; });
    thread detached([mine = tells(functions)](const tells&) {}, tells(arguments));
    detached.detach();
    functions.wait();
    arguments.wait();
    captured.join();
    given.join();
    exits.join();
  });
}

TEST_P(threads_on, identities) {
  rt.run([] {
    std::vector<thread> threads;
    std::vector<thread::id> inside(10);
    latch all(10);
    for (auto& id : inside) {
      threads.emplace_back([&] {
        id = this_thread::get_id();
        all.arrive_and_wait();
        EXPECT_EQ(id, this_thread::get_id());
      });
    }
    std::set<thread::id> ordered{this_thread::get_id()};
    std::unordered_set<thread::id> hashed{this_thread::get_id()};
    for (std::size_t i = 0; i < threads.size(); ++i) {
      ordered.insert(threads[i].get_id());
      hashed.insert(threads[i].get_id());
    }
    EXPECT_EQ(ordered.size(), 11U);
    EXPECT_EQ(hashed.size(), 11U);
    for (std::size_t i = 0; i < threads.size(); ++i) {
      const thread::id id = threads[i].get_id();
      threads[i].join();
      EXPECT_EQ(inside[i], id);
    }
    std::ostringstream out;
    out << this_thread::get_id();
    EXPECT_FALSE(out.str().empty());
  });
}

TEST_P(threads_on, sleeping) {
  rt.run([] {
    const auto began = std::chrono::steady_clock::now();
    this_thread::sleep_for(3ms);
    EXPECT_GE(std::chrono::steady_clock::now() - began, 3ms);
    const auto until = std::chrono::system_clock::now() + 2ms;
    this_thread::sleep_until(until);
    EXPECT_GE(std::chrono::system_clock::now(), until);
    this_thread::sleep_for(-1s);
    this_thread::sleep_until(std::chrono::steady_clock::now() - 1h);
    // Those who sleep do not keep the worker; they come back in the order of their deadlines.
    std::vector<thread> threads;
    std::atomic<int> awake{0};
    for (int i = 0; i < 100; ++i) {
      threads.emplace_back([&, i] {
        this_thread::sleep_for(std::chrono::microseconds(100 * (i % 10)));
        ++awake;
      });
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(awake, 100);
  });
}

TEST_P(threads_on, nested_creation) {
  rt.run([] {
    std::atomic<int> count{0};
    struct tree {
      static void grow(std::atomic<int>& n, int depth) {
        ++n;
        if (depth == 0) return;
        thread left([&, depth] { grow(n, depth - 1); });
        thread right([&, depth] { grow(n, depth - 1); });
        left.join();
        right.join();
      }
    };
    tree::grow(count, 8);
    EXPECT_EQ(count, 511);
  });
}

TEST_P(threads_on, the_root_may_leave_by_pthread_exit) {
  int before = 0;
  rt.run([&] {
    thread([&] { ++before; }).join();
    strata_pthread_exit(nullptr);
  });
  EXPECT_EQ(before, 1);
  EXPECT_THROW(rt.run([]() -> int { strata_pthread_exit(nullptr); }), misuse_error);
}

// Neither the frame, which the fixture counts, nor the room for one more thread.
TEST_P(threads_on, a_function_that_cannot_be_moved_takes_nothing_with_it) {
  rt.run([] {
    const auto alive = [] {  // as this worker has counted
      detail::place& p = detail::this_place();
      return p.threads_made.read() - p.threads_ended.read();
    };
    int refusals = 0;
    for (int moves = 0;; ++moves) {
      const auto before = alive();
      try {
        thread t{refuses_to_move(moves)};
        t.join();
        break;
      } catch (const std::runtime_error&) {
        ++refusals;
        EXPECT_EQ(alive(), before);
      }
    }
    EXPECT_GE(refusals, 2);  // on the way into the block among them
  });
}

TEST(thread, hardware_concurrency_is_the_runtimes) {
  runtime rt(with_workers(3));
  EXPECT_EQ(rt.run([] { return thread::hardware_concurrency(); }), 3U);
  EXPECT_EQ(rt.run([] { return jthread::hardware_concurrency(); }), 3U);
  EXPECT_EQ(thread::hardware_concurrency(), std::thread::hardware_concurrency());
}

TEST_P(threads_on, jthreads_stop_and_join) {
  rt.run([] {
    std::atomic<bool> stopped{false};
    {
      jthread t(
          [&](std::stop_token stop, int n) {
            EXPECT_EQ(n, 5);
            while (!stop.stop_requested()) this_thread::yield();
            stopped = true;
          },
          5);
      EXPECT_TRUE(t.get_stop_source().stop_possible());
    }
    EXPECT_TRUE(stopped);
    jthread plain([](int) {}, 1);
    EXPECT_FALSE(plain.get_stop_token().stop_requested());
    EXPECT_TRUE(plain.request_stop());
    EXPECT_FALSE(plain.request_stop());
    plain.join();
    EXPECT_FALSE(plain.joinable());
    expect_code(std::errc::invalid_argument, [&] { plain.join(); });
    jthread none;
    EXPECT_FALSE(none.get_stop_source().stop_possible());
    // Assignment ends the old one first.
    std::atomic<int> ended{0};
    jthread a([&](std::stop_token stop) {
      while (!stop.stop_requested()) this_thread::yield();
      ++ended;
    });
    a = jthread([&] {});
    EXPECT_EQ(ended, 1);
    jthread b;
    b.swap(a);
    EXPECT_TRUE(b.joinable());
    swap(a, b);
    EXPECT_TRUE(a.joinable());
    a.detach();
  });
}

TEST_P(threads_on, jthreads_with_attributes_stop_too) {
  rt.run([] {
    std::atomic<int> stopped{0};
    {
      jthread by_token({.name = "by token", .stack_bytes = 64 * 1024},
                       [&](const std::stop_token& stop) {
                         while (!stop.stop_requested()) this_thread::yield();
                         ++stopped;
                       });
      const thread_attributes pinned{.pinned = true};
      jthread with_argument(
          pinned,
          [&](const stop_token& stop, int n) {
            EXPECT_EQ(n, 5);
            while (!stop.stop_requested()) this_thread::yield();
            ++stopped;
          },
          5);
      jthread without(
          thread_attributes{.priority = 1}, [&](int n) { EXPECT_EQ(n, 6); }, 6);
      without.join();
    }
    EXPECT_EQ(stopped, 2);
  });
}

// ---- attributes ----

[[gnu::noinline]] int touch(std::size_t bytes) {
  volatile char frame[8192];
  frame[0] = 1;
  if (bytes <= sizeof frame) return frame[0];
  return touch(bytes - sizeof frame) + frame[0];
}

TEST(thread_attributes, a_larger_stack_is_larger) {
  options small = with_workers(2);
  small.stack_bytes = 64 * 1024;
  runtime rt(small);
  rt.run([] {
    std::vector<thread> threads;
    std::atomic<int> reached{0};
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back(thread_attributes{.name = "deep", .stack_bytes = 8 << 20}, [&] {
        reached += touch(6 << 20) > 0 ? 1 : 0;
        this_thread::yield();
      });
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(reached, 4);
    // The usual ones go on beside them.
    thread usual([&] { ++reached; });
    usual.join();
    EXPECT_EQ(reached, 5);
  });
}

TEST(thread_attributes, one_that_cannot_be_is_refused) {
  runtime rt(with_workers(1));
  rt.run([] {
    const int before = tracked::living();
    expect_code(std::errc::invalid_argument, [] {
      thread t(thread_attributes{.stack_bytes = std::size_t{1} << 40}, [o = tracked(1)] {});
      t.join();
    });
    EXPECT_EQ(tracked::living(), before);
    thread fine(thread_attributes{.name = "x", .stack_bytes = 1}, [] {});
    fine.join();
  });
  rt.wait_idle();
  EXPECT_EQ(rt.stats().live_frames, 0);
}

class thread_death : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(thread_death, an_exception_that_leaves_a_named_thread) {
  EXPECT_DEATH(runtime(with_workers(1)).run([] {
    thread t(thread_attributes{.name = "collector"}, [] { throw 1; });
    t.join();
  }),
               "an exception left thread collector");
}

// A core file shows where it was thrown: no frame has been left.
TEST_F(thread_death, an_exception_that_leaves_a_thread_ends_the_program_where_it_was_thrown) {
  struct ends_the_program {
    ~ends_the_program() { std::_Exit(3); }
  };
  EXPECT_EXIT(runtime(with_workers(1)).run([] {
    thread t([] {
      const ends_the_program here;
      throw std::runtime_error("what there was");
    });
    t.join();
  }),
              ::testing::KilledBySignal(SIGABRT), "an exception left thread(.|\n)*what there was");
}

TEST_F(thread_death, an_exception_that_leaves_a_thread_without_a_name) {
  // g++ names the function around a lambda, clang the file.
  EXPECT_DEATH(runtime(with_workers(1)).run([] {
    thread t([] { throw 1; });
    t.join();
  }),
               "an exception left thread .*(thread_without_a_name|thread_test.cpp)");
}

TEST_F(thread_death, destroying_a_joinable_thread) {
  EXPECT_DEATH(runtime(with_workers(1)).run([] { thread t([] {}); }), "");
  EXPECT_DEATH(runtime(with_workers(1)).run([] {
    thread t([] {});
    t = thread();
  }),
               "");
}

TEST_F(thread_death, stack_overflow_names_the_thread) {
  if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "the sanitizer reports it itself";
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1} << 20}) {
    EXPECT_EXIT(runtime(with_workers(1)).run([bytes] {
      thread t(thread_attributes{.name = "digger", .stack_bytes = bytes}, [] {
        volatile int depth = 0;
        recurse_for_ever(&depth);
      });
      t.join();
    }),
                ::testing::ExitedWithCode(1), "stack overflow in .*digger(.|\n)*stack");
  }
}

}  // namespace
}  // namespace strata::test
