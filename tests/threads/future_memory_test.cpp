// SPDX-License-Identifier: Apache-2.0
// Results where there is no memory. One that is to be ready when its thread has ended has not been
// set if it cannot be remembered, and another may come.
#include <gtest/gtest.h>

#include <cstddef>
#include <exception>
#include <new>
#include <utility>

#include "../common/refused_new.hpp"
#include "../sched/support.hpp"
#include "strata/future.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

// Calls later(source) where so many bytes or more are refused, in a thread of its own, and now(it)
// if that had no memory. Either way somebody who waits gets a result. Returns whether it had none.
template <class Source, class Later, class Now>
bool is_refused(std::size_t least, Source source, Later later, Now now) {
  auto result = source.get_future();
  bool refused = false;
  thread t([&] {
    try {
      const refused_new none(least);
      later(source);
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    if (refused) now(source);
  });
  t.join();
  EXPECT_EQ(result.wait_for(std::chrono::seconds(0)), future_status::ready);
  EXPECT_EQ(result.get(), refused ? 2 : 1) << "with less than " << least << " bytes";
  return refused;
}

// Each of what is kept for it is refused in turn.
template <class Make, class Later, class Now>
void refuse_each(const Make& make, const Later& later, const Now& now) {
  runtime rt(with_workers(1));
  rt.run([&] {
    for (std::size_t least = 0; least <= 512; least += 8) {
      const bool refused = is_refused(least, make(), later, now);
      if (least == 0) {
        EXPECT_TRUE(refused);
      } else if (!refused) {
        return;  // it needs no more
      }
    }
    FAIL() << "always refused";
  });
}

TEST(without_memory_at_thread_exit, a_value_is_not_set) {
  refuse_each([] { return promise<int>(); }, [](promise<int>& p) { p.set_value_at_thread_exit(1); },
              [](promise<int>& p) { p.set_value(2); });
}

TEST(without_memory_at_thread_exit, an_exception_is_not_set) {
  const auto error = std::make_exception_ptr(1);
  runtime rt(with_workers(1));
  rt.run([&] {
    promise<int> p;
    auto result = p.get_future();
    thread([&] {
      {
        const refused_new none(0);
        EXPECT_THROW(p.set_exception_at_thread_exit(error), std::bad_alloc);
      }
      p.set_value_at_thread_exit(2);
    }).join();
    EXPECT_EQ(result.get(), 2);
  });
}

TEST(without_memory_at_thread_exit, a_task_is_not_called) {
  int calls = 0;
  refuse_each(
      [&] {
        calls = 0;
        return packaged_task<int(int)>([&](int n) { return ++calls, n; });
      },
      [](packaged_task<int(int)>& task) { task.make_ready_at_thread_exit(1); },
      [&](packaged_task<int(int)>& task) {
        EXPECT_EQ(calls, 0);
        task(2);
      });
  EXPECT_EQ(calls, 1);
}

// Its end can tell nobody else what it has no memory for.
TEST(without_memory, a_promise_is_broken) {
  runtime rt(with_workers(1));
  rt.run([] {
    promise<int> kept;
    auto result = kept.get_future();
    {
      const refused_new none(0);
      const promise<int> goes(std::move(kept));
    }
    try {
      result.get();
      FAIL() << "no exception";
    } catch (const future_error& e) {
      EXPECT_EQ(e.code(), future_errc::broken_promise);
    }
  });
}

}  // namespace
}  // namespace strata::test
