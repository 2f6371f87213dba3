// SPDX-License-Identifier: Apache-2.0
// What a thread promises for its end comes when it has ended, after its values have gone.
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "../sched/support.hpp"
#include "expect_code.hpp"
#include "strata/condition_variable.hpp"
#include "strata/future.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

TEST(future, at_thread_exit) {
  runtime rt(with_workers(2));
  rt.run([] {
    promise<int> p;
    promise<void> q;
    auto f = p.get_future();
    auto g = q.get_future();
    binary_semaphore set(0), go(0);
    static std::atomic<bool> cleaned{false};
    cleaned = false;
    thread_specific_ptr<int> mine([](int*) { cleaned = true; });
    int object = 0;
    thread t([&] {
      mine.reset(&object);
      p.set_value_at_thread_exit(3);
      q.set_exception_at_thread_exit(std::make_exception_ptr(std::runtime_error("at exit")));
      set.release();
      go.acquire();
    });
    set.acquire();
    expect_code(future_errc::promise_already_satisfied, [&] { p.set_value(4); });
    EXPECT_EQ(f.wait_for(1ms), future_status::timeout);
    go.release();
    EXPECT_EQ(f.get(), 3);
    EXPECT_TRUE(cleaned);  // values go first
    EXPECT_THROW(g.get(), std::runtime_error);
    t.join();

    packaged_task<int(int)> task([](int x) { return x * x; });
    auto h = task.get_future();
    thread u([&] {
      task.make_ready_at_thread_exit(4);
      EXPECT_EQ(h.wait_for(0s), future_status::timeout);
    });
    EXPECT_EQ(h.get(), 16);
    u.join();

    // The promise may go before the thread does.
    future<int> late;
    thread v([&] {
      promise<int> inner;
      late = inner.get_future();
      inner.set_value_at_thread_exit(9);
    });
    v.join();
    EXPECT_EQ(late.get(), 9);
  });
}

// The end of a result that nobody has fetched asks for another one at the end of its thread, whose
// end may do so again.
TEST(future, at_the_exit_of_a_thread_that_lets_go_of_another_at_its_exit) {
  struct tells {
    promise<void>* end;
    int others;
    tells(promise<void>* p, int n) : end(p), others(n) {}
    tells(tells&& other) noexcept : end(std::exchange(other.end, nullptr)), others(other.others) {}
    ~tells() {
      if (end == nullptr) return;
      if (others == 0)
        end->set_value_at_thread_exit();
      else
        promise<tells>().set_value_at_thread_exit(tells(end, others - 1));
    }
  };
  runtime rt(with_workers(1));
  rt.run([] {
    for (const int others : {0, 9}) {
      promise<void> told;
      auto f = told.get_future();
      thread([&] {
        promise<tells> unfetched;
        unfetched.set_value_at_thread_exit(tells(&told, others));
      }).join();
      EXPECT_EQ(f.wait_for(0s), future_status::ready);
    }
  });
}

TEST(future, at_the_exit_of_a_thread_from_outside) {
  promise<int> p;
  auto f = p.get_future();
  std::thread t([&] { p.set_value_at_thread_exit(3); });
  EXPECT_EQ(f.get(), 3);  // this thread is from outside, too
  t.join();
}

TEST(condition_variable, notified_at_thread_exit) {
  runtime rt(with_workers(2));
  rt.run([] {
    mutex m;
    condition_variable changed;
    bool ended = false;
    thread t([&] {
      std::unique_lock lock(m);
      ended = true;
      notify_all_at_thread_exit(changed, std::move(lock));
      EXPECT_FALSE(m.try_lock());
    });
    {
      std::unique_lock lock(m);
      changed.wait(lock, [&] { return ended; });
    }
    t.join();
  });
}

}  // namespace
}  // namespace strata::test
