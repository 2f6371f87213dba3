// SPDX-License-Identifier: Apache-2.0
// Waits until a time of a clock that is set forward meanwhile: they end although no second of the
// hour has passed that they were to take.
#include <gtest/gtest.h>
#include <strata/pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <strata/condition_variable.hpp>
#include <strata/future.hpp>
#include <strata/mutex.hpp>
#include <strata/runtime.hpp>
#include <strata/semaphore.hpp>
#include <strata/thread.hpp>
#include <string>
#include <thread>
#include <vector>

#include "../common/thread_states.hpp"
#include "threads/waiter.hpp"

namespace {
std::atomic<time_t> seconds_ahead{0};
}

// In front of the C library's. Only the real-time clock is ever set.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (syscall(SYS_clock_gettime, clock, now) != 0) return -1;
  if (clock == CLOCK_REALTIME) now->tv_sec += seconds_ahead.load();
  return 0;
}

namespace {

constexpr time_t hour_s = 3600;

timespec in_an_hour() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_sec += hour_s;
  return t;
}

// What all of them wait for, and never get.
struct objects {
  pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  pthread_rwlock_t read = PTHREAD_RWLOCK_INITIALIZER;
  sem_t none{};
  pthread_t unending{};
  sem_t end{};
  strata::timed_mutex locked;
  strata::condition_variable silent;
  strata::counting_semaphore<> empty{0};
  strata::promise<int> unkept;

  int wait_for_condition(const timespec& until) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    strata_pthread_mutex_lock(&m);
    const int answer = strata_pthread_cond_timedwait(&never, &m, &until);
    strata_pthread_mutex_unlock(&m);
    return answer;
  }
  bool wait_for_silent(std::chrono::system_clock::time_point until) {
    strata::mutex m;
    std::unique_lock lock(m);
    return silent.wait_until(lock, until, [] { return false; });
  }
};

struct wait {
  const char* name;
  const char* state;
  bool (*ends_in_time)(objects&);
};
const wait waits[] = {
    {"mutex", "mutex",
     [](objects& o) {
       const timespec until = in_an_hour();
       return strata_pthread_mutex_timedlock(&o.held, &until) == ETIMEDOUT;
     }},
    // Once: it is not woken for looking at the clock.
    {"condition", "condition variable",
     [](objects& o) { return o.wait_for_condition(in_an_hour()) == ETIMEDOUT; }},
    {"write", "read-write lock",
     [](objects& o) {
       const timespec until = in_an_hour();
       return strata_pthread_rwlock_timedwrlock(&o.read, &until) == ETIMEDOUT;
     }},
    {"semaphore", "semaphore",
     [](objects& o) {
       const timespec until = in_an_hour();
       return strata_sem_timedwait(&o.none, &until) == -1;
     }},
    {"join", "thread to end",
     [](objects& o) {
       const timespec until = in_an_hour();
       return strata_pthread_timedjoin_np(o.unending, nullptr, &until) == ETIMEDOUT;
     }},
    {"sleep", "time to pass",
     [](objects&) {
       const timespec until = in_an_hour();
       return strata_clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, nullptr) == 0;
     }},
    {"timed mutex", "mutex",
     [](objects& o) {
       const auto until = std::chrono::system_clock::now() + std::chrono::hours(1);
       return !o.locked.try_lock_until(until);
     }},
    {"silent", "condition variable",
     [](objects& o) {
       return !o.wait_for_silent(std::chrono::system_clock::now() + std::chrono::hours(1));
     }},
    {"empty", "semaphore",
     [](objects& o) {
       const auto until = std::chrono::system_clock::now() + std::chrono::hours(1);
       return !o.empty.try_acquire_until(until);
     }},
    {"future", "future",
     [](objects& o) {
       const auto until = std::chrono::system_clock::now() + std::chrono::hours(1);
       return o.unkept.get_future().wait_until(until) == strata::future_status::timeout;
     }},
};

void* wait_for_end(void* end) {
  while (strata_sem_wait(static_cast<sem_t*>(end)) != 0) {
  }
  return nullptr;
}

TEST(clock_set_forward, ends_waits_until_a_time_on_it) {
  strata::options two;
  two.workers = 2;
  strata::runtime rt(two);
  rt.run([] {
    objects o;
    strata_sem_init(&o.none, 0, 0);
    strata_sem_init(&o.end, 0, 0);
    ASSERT_EQ(strata_pthread_create(&o.unending, nullptr, &wait_for_end, &o.end), 0);
    ASSERT_EQ(strata_pthread_mutex_lock(&o.held), 0);
    ASSERT_EQ(strata_pthread_rwlock_rdlock(&o.read), 0);
    o.locked.lock();
    std::vector<strata::thread> all;
    for (const wait& w : waits) {
      all.emplace_back(strata::thread_attributes{.name = w.name},
                       [&] { EXPECT_TRUE(w.ends_in_time(o)) << w.name; });
    }
    for (const wait& w : waits)
      (void)strata::test::text_when(w.name, std::string("waiting for ") + w.state);
    seconds_ahead += 2 * hour_s;
    for (strata::thread& t : all) t.join();
    o.locked.unlock();
    strata_pthread_rwlock_unlock(&o.read);
    strata_pthread_mutex_unlock(&o.held);
    strata_sem_post(&o.end);
    EXPECT_EQ(strata_pthread_join(o.unending, nullptr), 0);
  });
}

// An OS thread looks itself.
TEST(clock_set_forward, ends_waits_from_outside) {
  objects o;
  std::thread outside([&] { EXPECT_EQ(o.wait_for_condition(in_an_hour()), ETIMEDOUT); });
  while (!strata::detail::is_awaited(&o.never)) std::this_thread::yield();
  seconds_ahead += 2 * hour_s;
  outside.join();
}

}  // namespace
