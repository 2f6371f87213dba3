// SPDX-License-Identifier: Apache-2.0
// The last thread of a runtime is woken from outside, and the runtime ends before who woke it has
// come back from that.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <optional>
#include <thread>
#include <utility>

#include "../common/thread_asleep.hpp"
#include "../sched/support.hpp"
#include "os/system_call.hpp"
#include "sched/scheduler.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

// Stops those of a thread who wake others on their way back, until the runtime is gone, or waits.
struct wake_held_up {
  std::atomic<bool> waits{false};  // the runtime's end, for its foreign wakers
  std::atomic<bool> is_gone{false};
  bool came_too_late = false;  // who woke
};
thread_local wake_held_up* wakes_here = nullptr;
thread_local wake_held_up* ends_here = nullptr;

void hold_up() noexcept {
  wake_held_up& held = *std::exchange(wakes_here, nullptr);
  spin_until([&] { return held.waits || held.is_gone; });
  held.came_too_late = held.is_gone;
}

}  // namespace
}  // namespace strata::test

// ---- in front of the C library's ----

extern "C" int sched_yield() noexcept {
  if (strata::test::ends_here != nullptr) strata::test::ends_here->waits = true;
  return static_cast<int>(strata::os::system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0));
}

extern "C" long syscall(long number, ...) noexcept {
  std::va_list list;
  va_start(list, number);
  long a[6];
  for (long& one : a) one = va_arg(list, long);
  va_end(list);
  const long answer = strata::os::system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const long what = a[1] & FUTEX_CMD_MASK;
  if (number == SYS_futex && (what == FUTEX_WAKE || what == FUTEX_WAKE_BITSET) &&
      strata::test::wakes_here != nullptr)
    strata::test::hold_up();
  if (answer >= 0) return answer;
  errno = static_cast<int>(-answer);
  return -1;
}

namespace strata::test {
namespace {

// In a runtime of one worker, whose place this thread takes: its threads wait for what `wake` does
// from outside, and end then.
template <class Wait, class Wake>
void wake_the_last(const Wait& wait, const Wake& wake) {
  wake_held_up held;
  std::atomic<detail::scheduler*> home{nullptr};
  const pid_t guest = gettid();
  std::thread outside([&] {
    // Said, and then done.
    spin_until([&] { return home != nullptr && home.load()->all_sleep() && sleeps(guest); });
    wakes_here = &held;
    wake();
    EXPECT_EQ(wakes_here, nullptr) << "there was nobody to wake";
    wakes_here = nullptr;
  });
  {
    std::optional<runtime> rt(with_workers(1));
    rt->run([&] { wait([&] { home = detail::this_worker().owner; }); });
    ends_here = &held;
    rt.reset();
    ends_here = nullptr;
  }
  held.is_gone = true;
  outside.join();
  EXPECT_FALSE(held.came_too_late) << "the runtime did not wait for who woke its last thread";
}

TEST(last_wake, of_a_pinned_thread_holds_up_the_end_of_its_runtime) {
  counting_semaphore<> go(0);
  const auto wait = [&](const auto& begun) {
    thread pinned({.pinned = true}, [&] {
      begun();
      go.acquire();
    });
    pinned.join();
  };
  wake_the_last(wait, [&] { go.release(); });
}

TEST(last_wake, by_a_barrier_holds_up_the_end_of_its_runtime) {
  std::optional<barrier<>> all;
  const auto wait = [&](const auto& begun) {
    all.emplace(2);
    begun();
    all->arrive_and_wait();
  };
  wake_the_last(wait, [&] { (void)all->arrive(); });
}

TEST(last_wake, by_a_semaphore_holds_up_the_end_of_its_runtime) {
  counting_semaphore<> go(0);
  const auto wait = [&](const auto& begun) {
    begun();
    go.acquire();
  };
  wake_the_last(wait, [&] { go.release(); });
}

}  // namespace
}  // namespace strata::test
