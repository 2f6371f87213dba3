// SPDX-License-Identifier: Apache-2.0
// strata/pthread.h from C++, inside a runtime and among its other threads.
#include <gtest/gtest.h>
#include <strata/pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <strata/runtime.hpp>
#include <strata/thread.hpp>
#include <strata/thread_specific.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

strata::options workers(unsigned n) {
  strata::options o;
  o.workers = n;
  return o;
}

std::uint64_t dispatched(const strata::runtime& rt) {
  std::uint64_t sum = 0;
  for (const auto& w : rt.stats().workers) sum += w.dispatched;
  return sum;
}

void* give_back(void* a) { return a; }

TEST(pthread_header, threads_are_made_in_the_runtime_that_calls) {
  strata::runtime rt(workers(2));
  const std::uint64_t before = dispatched(rt);
  rt.run([] {
    for (long i = 0; i < 100; ++i) {
      pthread_t t;
      void* result = nullptr;
      ASSERT_EQ(strata_pthread_create(&t, nullptr, give_back, reinterpret_cast<void*>(i)), 0);
      ASSERT_EQ(strata_pthread_join(t, &result), 0);
      ASSERT_EQ(result, reinterpret_cast<void*>(i));
      ASSERT_EQ(strata_pthread_join(t, &result), ESRCH);
    }
  });
  EXPECT_GE(dispatched(rt), before + 100);
}

struct flag_at_end {
  std::atomic<int>& count;
  ~flag_at_end() { ++count; }
};
std::atomic<int> destroyed;
std::atomic<int> caught;
void* exit_through_cxx(void* a) {
  const flag_at_end one{destroyed};
  try {
    const flag_at_end two{destroyed};
    strata_pthread_exit(a);
  } catch (...) {
    ++caught;
    throw;
  }
}

TEST(pthread_header, exit_runs_destructors_and_is_seen_by_catch_all) {
  strata::runtime rt(workers(2));
  destroyed = 0;
  caught = 0;
  rt.run([] {
    pthread_t t;
    void* result = nullptr;
    ASSERT_EQ(strata_pthread_create(&t, nullptr, exit_through_cxx, &t), 0);
    ASSERT_EQ(strata_pthread_join(t, &result), 0);
    EXPECT_EQ(result, &t);
  });
  EXPECT_EQ(destroyed, 2);
  EXPECT_EQ(caught, 1);
}

TEST(pthread_header, a_strata_thread_has_values_and_a_name_and_can_be_cancelled) {
  strata::runtime rt(workers(2));
  destroyed = 0;
  rt.run([] {
    pthread_key_t key;
    ASSERT_EQ(
        strata_pthread_key_create(&key, [](void* v) { ++*static_cast<std::atomic<int>*>(v); }), 0);
    std::atomic<pthread_t> who{0};
    strata::thread t([&] {
      strata_pthread_setspecific(key, &destroyed);
      EXPECT_EQ(strata_pthread_getspecific(key), &destroyed);
      who = strata_pthread_self();
      strata_sleep(1000);
      ADD_FAILURE() << "was not cancelled";
    });
    while (who == 0) strata::this_thread::yield();
    EXPECT_EQ(strata_pthread_cancel(who), 0);
    t.join();
    EXPECT_EQ(destroyed, 1);
    strata_pthread_key_delete(key);
  });
}

TEST(pthread_header, threads_inside_and_outside_wake_each_other) {
  strata::runtime rt(workers(2));
  sem_t to;
  sem_t back;
  ASSERT_EQ(strata_sem_init(&to, 0, 0), 0);
  ASSERT_EQ(strata_sem_init(&back, 0, 0), 0);
  std::thread outside([&] {
    for (int i = 0; i < 200; ++i) {
      strata_sem_wait(&to);
      strata_sem_post(&back);
    }
  });
  rt.run([&] {
    for (int i = 0; i < 200; ++i) {
      strata_sem_post(&to);
      strata_sem_wait(&back);
    }
  });
  outside.join();
  int left = -1;
  strata_sem_getvalue(&back, &left);
  EXPECT_EQ(left, 0);
}

TEST(pthread_header, an_outside_thread_can_hold_its_cancellation_back) {
  std::atomic<pthread_t> who{0};
  std::atomic<bool> cleaned{false};
  std::thread outside([&] {
    sem_t never;
    strata_sem_init(&never, 0, 0);
    strata_pthread_cleanup_push([](void* a) { *static_cast<std::atomic<bool>*>(a) = true; },
                                &cleaned);
    who = strata_pthread_self();
    // Held back: the C++ library's own thread must end by returning.
    strata_pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec = soon.tv_nsec > 900000000 ? 999999999 : soon.tv_nsec + 50000000;
    EXPECT_EQ(strata_sem_timedwait(&never, &soon), -1);
    strata_pthread_cleanup_pop(1);
  });
  while (who == 0) std::this_thread::yield();
  EXPECT_EQ(strata_pthread_cancel(who), 0);
  outside.join();
  EXPECT_TRUE(cleaned);
  EXPECT_EQ(strata_pthread_cancel(who), ESRCH);
}

pthread_key_t set_late;
void* set_a_value_of_cxx(void* a) {
  static auto& values = *new strata::thread_specific_ptr<int>(
      [](int*) { strata_pthread_setspecific(set_late, &set_late); });
  values.reset(static_cast<int*>(a));
  return a;
}
void* value_of_set_late(void*) { return strata_pthread_getspecific(set_late); }

TEST(pthread_header, a_value_set_while_a_thread_ends_is_destroyed_with_it) {
  strata::runtime rt(workers(1));
  destroyed = 0;
  ASSERT_EQ(strata_pthread_key_create(&set_late, [](void*) { ++destroyed; }), 0);
  rt.run([] {
    int some = 0;
    pthread_t t;
    void* result = nullptr;
    ASSERT_EQ(strata_pthread_create(&t, nullptr, set_a_value_of_cxx, &some), 0);
    ASSERT_EQ(strata_pthread_join(t, nullptr), 0);
    EXPECT_EQ(destroyed, 1);
    ASSERT_EQ(strata_pthread_create(&t, nullptr, value_of_set_late, nullptr), 0);
    ASSERT_EQ(strata_pthread_join(t, &result), 0);
    EXPECT_EQ(result, nullptr);
  });
  strata_pthread_key_delete(set_late);
}

TEST(pthread_header, exit_of_a_strata_thread_runs_the_handlers_of_c) {
  strata::runtime rt(workers(2));
  destroyed = 0;
  rt.run([] {
    strata::thread t([] {
      const flag_at_end one{destroyed};
      strata_cleanup handler;  // as C has it
      strata_cleanup_push(
          &handler,
          [](void* count) {
            EXPECT_EQ(destroyed, 0);
            ++*static_cast<std::atomic<int>*>(count);
          },
          &destroyed);
      strata_pthread_exit(nullptr);
    });
    t.join();
  });
  EXPECT_EQ(destroyed, 2);
}

TEST(pthread_header, preemptible_threads_share_the_locks_in_here) {
  strata::runtime rt(workers(1));
  rt.run([] {
    std::atomic<int> begun{0};
    std::array<pthread_t, 3> ids{};
    std::vector<strata::thread> threads;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      threads.emplace_back(strata::thread_attributes{.preemptible = true}, [&, i] {
        ids[i] = strata_pthread_self();
        ++begun;
        while (begun < 3) strata::this_thread::yield();
        for (int n = 0; n < 300'000; ++n) {
          pthread_key_t key;
          if (strata_pthread_key_create(&key, nullptr) == 0) strata_pthread_key_delete(key);
          strata_pthread_kill(ids[0], 0);
        }
      });
    }
    for (auto& t : threads) t.join();
  });
}

TEST(pthread_header, what_is_not_offered_is_refused) {
  pthread_mutexattr_t a;
  pthread_mutex_t m;
  pthread_mutexattr_init(&a);
  pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  EXPECT_EQ(strata_pthread_mutex_init(&m, &a), ENOTSUP);
  pthread_mutexattr_init(&a);
  pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
  EXPECT_EQ(strata_pthread_mutex_init(&m, &a), ENOTSUP);
  EXPECT_EQ(strata_pthread_cancel(pthread_t{1} << 63), ESRCH);
}

}  // namespace
