// SPDX-License-Identifier: Apache-2.0
// strata/pthread.h in processes that end: what they say of a thread that ends them, and what is
// refused where there are no threads or no memory for it.
#include <gtest/gtest.h>
#include <strata/pthread.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <strata/runtime.hpp>

#include "../common/recurse_for_ever.hpp"
#include "../common/refuse_threads.hpp"
#include "../common/slow_builds.hpp"
#include "header_threads.hpp"

namespace {

using namespace header_threads;

// Runs it as a thread of one worker.
void run_thread(void* (*function)(void*)) {
  strata::runtime rt(workers(1));
  rt.run([&] {
    pthread_t t;
    if (strata_pthread_create(&t, nullptr, function, nullptr) == 0) strata_pthread_join(t, nullptr);
  });
}

class pthread_death : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void* overflow(void*) {
  strata_pthread_setname_np(strata_pthread_self(), "walter");
  volatile int depth = 0;
  return strata::test::recurse_for_ever(&depth) != 0 ? nullptr : &destroyed;
}

TEST_F(pthread_death, an_overflow_is_named_like_the_thread) {
  if (strata::test::address_sanitizer || strata::test::thread_sanitizer)
    GTEST_SKIP() << "the sanitizer reports it itself";
  EXPECT_EXIT(run_thread(&overflow), ::testing::ExitedWithCode(1),
              "stack overflow in thread walter");
}

// Nothing of the stack is gone when the program ends.
struct ends_the_program {
  ~ends_the_program() { std::_Exit(3); }
};
void* throw_something(void*) {
  strata_pthread_setname_np(strata_pthread_self(), "walter");
  const ends_the_program here;
  throw std::runtime_error("what there was");
}

TEST_F(pthread_death, an_exception_that_leaves_a_thread_is_named_like_it) {
  EXPECT_EXIT(run_thread(&throw_something), ::testing::KilledBySignal(SIGABRT),
              "an exception left thread walter(.|\n)*what there was");
}

timespec soon(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  t.tv_nsec += 3'000'000;
  if (t.tv_nsec >= 1'000'000'000) {
    t.tv_nsec -= 1'000'000'000;
    ++t.tv_sec;
  }
  return t;
}

// Which of the waits did not end as it should.
int wait_for_a_while() {
  const timespec until = soon(CLOCK_REALTIME);
  pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  pthread_rwlock_t read = PTHREAD_RWLOCK_INITIALIZER;
  sem_t none;
  strata_sem_init(&none, 0, 0);
  strata_pthread_mutex_lock(&held);
  strata_pthread_mutex_lock(&checked);
  strata_pthread_rwlock_rdlock(&read);
  int woken = 0;
  while ((woken = strata_pthread_cond_timedwait(&never, &checked, &until)) == 0) {
  }
  if (woken != ETIMEDOUT) return 4;
  if (strata_pthread_mutex_unlock(&checked) != 0) return 5;
  if (strata_pthread_mutex_timedlock(&held, &until) != ETIMEDOUT) return 6;
  if (strata_pthread_rwlock_timedwrlock(&read, &until) != ETIMEDOUT) return 7;
  if (strata_sem_timedwait(&none, &until) != -1 || errno != ETIMEDOUT) return 8;
  const timespec a_little{0, 1'000'000};
  if (strata_nanosleep(&a_little, nullptr) != 0) return 9;
  const timespec later = soon(CLOCK_MONOTONIC);
  if (strata_pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &later) != ETIMEDOUT) return 10;
  return 42;
}

TEST_F(pthread_death, waits_end_in_time_where_there_is_no_thread_for_deadlines) {
  if (strata::test::address_sanitizer || strata::test::thread_sanitizer)
    GTEST_SKIP() << "the sanitizer needs the addresses";
  EXPECT_EXIT(
      {
        strata::runtime rt(workers(1));
        std::_Exit(rt.run([] {
          strata::test::refuse_threads();
          return wait_for_a_while();
        }));
      },
      ::testing::ExitedWithCode(42), "");
}

// What did not go as it should.
int make_first_threads() {
  setenv("STRATA_WORKERS", "64", 1);
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  pthread_t t;
  // No memory for stacks, and then no threads for most of the workers.
  for (const rlim_t bytes_left : {rlim_t{1} << 20, rlim_t{160} << 20}) {
    strata::test::refuse_threads(bytes_left);
    if (strata_pthread_create(&t, nullptr, give_back, &t) != EAGAIN) return 4;
  }
  strata::test::allow_threads();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  if (sigismember(&before, SIGTERM) != sigismember(&after, SIGTERM)) return 5;
  void* result = nullptr;
  if (strata_pthread_create(&t, nullptr, give_back, &t) != 0) return 6;
  if (strata_pthread_join(t, &result) != 0) return 7;
  return result == &t ? 42 : 8;
}

TEST_F(pthread_death, the_first_thread_is_refused_without_workers_and_a_later_one_begins) {
  if (strata::test::address_sanitizer || strata::test::thread_sanitizer)
    GTEST_SKIP() << "the sanitizer needs the addresses";
  EXPECT_EXIT(std::_Exit(make_first_threads()), ::testing::ExitedWithCode(42), "");
}

}  // namespace
