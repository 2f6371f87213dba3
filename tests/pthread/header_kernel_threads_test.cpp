// SPDX-License-Identifier: Apache-2.0
// strata/pthread.h called by kernel threads that it has not made.
#include <gtest/gtest.h>
#include <strata/pthread.h>

#include <atomic>
#include <csetjmp>
#include <ctime>
#include <strata/runtime.hpp>
#include <strata/thread_specific.hpp>
#include <thread>

#include "header_threads.hpp"

namespace {

using namespace header_threads;

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

// As pthread_cleanup_push() is compiled in C.
void* exit_with_a_handler_of_c(void* a) {
  __pthread_unwind_buf_t buffer;
  if (_setjmp(reinterpret_cast<__jmp_buf_tag*>(buffer.__cancel_jmp_buf)) != 0) {
    ++destroyed;
    strata_pthread_unwind_next(&buffer);
  }
  strata_pthread_register_cancel(&buffer);
  strata_pthread_exit(a);
}
void* exit_with_handlers(void* a) {
  const flag_at_end one{destroyed};
  strata_cleanup handler;
  strata_cleanup_push(
      &handler, [](void*) { ++destroyed; }, nullptr);
  return exit_with_a_handler_of_c(a);
}

TEST(pthread_header, exit_of_a_kernel_thread_runs_the_handlers_of_c) {
  destroyed = 0;
  pthread_t t;
  void* result = nullptr;
  ASSERT_EQ(pthread_create(&t, nullptr, exit_with_handlers, &t), 0);
  ASSERT_EQ(pthread_join(t, &result), 0);
  EXPECT_EQ(result, &t);
  EXPECT_EQ(destroyed, 3);
}

pthread_key_t of_the_c_library;
void* end_with_a_value_of_the_c_library(void* a) {
  EXPECT_NE(strata_pthread_self(), 0U);
  // What asks for the thread's end for the first time now is told of it; what asks as late as the
  // destructors of keys the C library keeps for good, and a few bytes for it.
  static auto& early = *new strata::thread_specific_ptr<int>([](int*) {});
  early.reset(static_cast<int*>(a));
  EXPECT_EQ(pthread_setspecific(of_the_c_library, a), 0);
  return a;
}
void set_values_of_ours(void* a) {
  strata_pthread_setspecific(set_late, a);
  set_a_value_of_cxx(a);
}

TEST(pthread_header, what_a_kernel_thread_sets_while_it_ends_is_destroyed) {
  destroyed = 0;
  ASSERT_EQ(strata_pthread_key_create(&set_late, [](void*) { ++destroyed; }), 0);
  ASSERT_EQ(pthread_key_create(&of_the_c_library, &set_values_of_ours), 0);
  pthread_t t;
  int some = 0;
  ASSERT_EQ(pthread_create(&t, nullptr, end_with_a_value_of_the_c_library, &some), 0);
  ASSERT_EQ(pthread_join(t, nullptr), 0);
  EXPECT_EQ(destroyed, 2);
  pthread_key_delete(of_the_c_library);
  strata_pthread_key_delete(set_late);
}

}  // namespace
