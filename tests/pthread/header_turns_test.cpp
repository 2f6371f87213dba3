// SPDX-License-Identifier: Apache-2.0
// strata/pthread.h from C++, inside a runtime: who is woken at a lock or a condition variable, and
// that all have their turn.
#include <gtest/gtest.h>
#include <strata/pthread.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <strata/runtime.hpp>
#include <strata/thread.hpp>
#include <vector>

#include "../common/slow_builds.hpp"
#include "header_threads.hpp"

namespace {

using namespace header_threads;

void* write_for_a_while(void* lock) {
  strata_pthread_rwlock_wrlock(static_cast<pthread_rwlock_t*>(lock));
  strata_sched_yield();  // those that were woken look
  strata_pthread_rwlock_unlock(static_cast<pthread_rwlock_t*>(lock));
  return nullptr;
}

void* read_for_a_while(void* lock) {
  strata_pthread_rwlock_rdlock(static_cast<pthread_rwlock_t*>(lock));
  strata_sched_yield();
  strata_pthread_rwlock_unlock(static_cast<pthread_rwlock_t*>(lock));
  return nullptr;
}

TEST(pthread_header, unlocking_wakes_one_writer_at_a_time) {
  for (const int kind : {PTHREAD_RWLOCK_DEFAULT_NP, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP}) {
    strata::runtime rt(workers(1));
    rt.run([&] {
      constexpr unsigned many = strata::test::scaled(500, 200);
      pthread_rwlockattr_t attributes;
      pthread_rwlockattr_init(&attributes);
      pthread_rwlockattr_setkind_np(&attributes, kind);
      pthread_rwlock_t lock;
      ASSERT_EQ(strata_pthread_rwlock_init(&lock, &attributes), 0);
      ASSERT_EQ(strata_pthread_rwlock_wrlock(&lock), 0);
      std::vector<pthread_t> all(many);
      for (unsigned i = 0; i < many; ++i) {
        auto* const what = i % 10 == 9 ? read_for_a_while : write_for_a_while;
        ASSERT_EQ(strata_pthread_create(&all[i], nullptr, what, &lock), 0);
      }
      // The only worker: all wait afterwards.
      const auto waits = [&] { return rt.stats().total().suspensions; };
      while (waits() < many) strata_sched_yield();
      const std::uint64_t before = waits();
      ASSERT_EQ(strata_pthread_rwlock_unlock(&lock), 0);
      for (const pthread_t t : all) ASSERT_EQ(strata_pthread_join(t, nullptr), 0);
      EXPECT_LE(waits() - before, 4U * many);
      pthread_rwlockattr_destroy(&attributes);
    });
  }
}

// Who waits at a condition variable again, after its time has passed, and others who came later.
struct comes_back {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  int begun = 0;  // waits, but for the first one
  bool gave_up = false, goes_back = false;
  int back_woken = 0, others_woken = 0;

  void first() {
    timespec next_second{};
    strata_pthread_mutex_lock(&mutex);
    clock_gettime(CLOCK_REALTIME, &next_second);
    next_second = {next_second.tv_sec + 1, 0};
    EXPECT_EQ(strata_pthread_cond_timedwait(&changed, &mutex, &next_second), ETIMEDOUT);
    gave_up = true;
    strata_pthread_mutex_unlock(&mutex);
    while (!goes_back) strata_sched_yield();
    wait(back_woken);
  }
  void wait(int& woken) {
    strata_pthread_mutex_lock(&mutex);
    ++begun;
    strata_pthread_cond_wait(&changed, &mutex);
    ++woken;
    strata_pthread_mutex_unlock(&mutex);
  }
  void await(int waits) {
    while (begun < waits) strata_sched_yield();
    strata_pthread_mutex_lock(&mutex);  // and so it has been given back
    strata_pthread_mutex_unlock(&mutex);
  }
};

TEST(pthread_header, who_comes_back_to_a_condition_variable_has_its_place) {
  strata::runtime rt(workers(1));
  rt.run([] {
    constexpr int others = 3;
    comes_back one;
    const auto begin = [&](void* (*body)(void*)) {
      pthread_t t;
      EXPECT_EQ(strata_pthread_create(&t, nullptr, body, &one), 0);
      return t;
    };
    std::vector<pthread_t> all;
    all.push_back(begin([](void* c) -> void* {
      static_cast<comes_back*>(c)->first();
      return nullptr;
    }));
    while (!one.gave_up) strata_sched_yield();
    for (int i = 0; i < others; ++i) {
      all.push_back(begin([](void* c) -> void* {
        static_cast<comes_back*>(c)->wait(static_cast<comes_back*>(c)->others_woken);
        return nullptr;
      }));
    }
    one.await(others);
    one.goes_back = true;
    one.await(others + 1);
    strata_pthread_cond_signal(&one.changed);
    while (one.back_woken + one.others_woken == 0) strata_sched_yield();
    EXPECT_EQ(one.back_woken, 1);
    EXPECT_EQ(one.others_woken, 0);
    strata_pthread_cond_broadcast(&one.changed);
    for (const pthread_t t : all) EXPECT_EQ(strata_pthread_join(t, nullptr), 0);
  });
}

// One thread takes it again at once, and lets others run with it.
TEST(pthread_header, a_lock_to_write_is_not_kept_by_who_takes_it_again_at_once) {
  strata::runtime rt(workers(1));
  rt.run([] {
    constexpr int others = 5, turns_max = 1000;
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    int turns = 0, got = 0;
    strata::thread greedy([&] {
      while (got < others && turns < turns_max) {
        strata_pthread_rwlock_wrlock(&lock);
        ++turns;
        strata::this_thread::yield();
        strata_pthread_rwlock_unlock(&lock);
      }
    });
    std::vector<strata::thread> all;
    for (int i = 0; i < others; ++i) {
      all.emplace_back([&] {
        strata_pthread_rwlock_wrlock(&lock);
        ++got;
        strata_pthread_rwlock_unlock(&lock);
      });
    }
    greedy.join();
    for (strata::thread& t : all) t.join();
    EXPECT_LT(turns, 100);
  });
}

// Nobody is forgotten, whoever comes, gives up or is let in at the same time.
TEST(pthread_header, readers_and_writers_all_have_their_turn) {
  for (const int kind : {PTHREAD_RWLOCK_DEFAULT_NP, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP}) {
    for (const unsigned n : {1U, 2U, 4U}) {
      strata::runtime rt(workers(n));
      rt.run([&] {
        pthread_rwlockattr_t attributes;
        pthread_rwlockattr_init(&attributes);
        pthread_rwlockattr_setkind_np(&attributes, kind);
        pthread_rwlock_t lock;
        ASSERT_EQ(strata_pthread_rwlock_init(&lock, &attributes), 0);
        std::atomic<int> reading{0}, writing{0}, wrong{0};
        const auto read = [&] {
          ++reading;
          wrong += writing != 0 ? 1 : 0;
          strata::this_thread::yield();
          --reading;
          strata_pthread_rwlock_unlock(&lock);
        };
        const auto write = [&] {
          wrong += ++writing != 1 || reading != 0 ? 1 : 0;
          strata::this_thread::yield();
          --writing;
          strata_pthread_rwlock_unlock(&lock);
        };
        const auto turn = [&](int which) {
          timespec soon{};
          clock_gettime(CLOCK_REALTIME, &soon);
          switch (which % 7) {
            case 0:
              if (strata_pthread_rwlock_timedwrlock(&lock, &soon) == 0) write();
              break;
            case 1:
              if (strata_pthread_rwlock_timedrdlock(&lock, &soon) == 0) read();
              break;
            case 2:
              if (strata_pthread_rwlock_wrlock(&lock) == 0) write();
              break;
            default:
              if (strata_pthread_rwlock_rdlock(&lock) == 0) read();
          }
        };
        std::vector<strata::thread> all;
        for (int i = 0; i < strata::test::scaled(500, 50); ++i) {
          all.emplace_back([&, i] {
            for (int k = 0; k < 20; ++k) turn(i + 3 * k);
          });
        }
        for (strata::thread& t : all) t.join();
        EXPECT_EQ(wrong, 0);
        EXPECT_EQ(strata_pthread_rwlock_trywrlock(&lock), 0);
        EXPECT_EQ(strata_pthread_rwlock_unlock(&lock), 0);
        EXPECT_EQ(strata_pthread_rwlock_destroy(&lock), 0);
        pthread_rwlockattr_destroy(&attributes);
      });
    }
  }
}

}  // namespace
