// SPDX-License-Identifier: Apache-2.0
// The record of a thread that we have not made, asked for by a handler that has interrupted its
// making.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <strata/pthread.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace {
thread_local bool is_interrupted = false;
}

// In front of the C library's, by which the end of such a thread is seen.
extern "C" int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
  using function = int (*)(pthread_key_t, const void*);
  static const auto next = reinterpret_cast<function>(dlsym(RTLD_NEXT, "pthread_setspecific"));
  const int error = next(key, value);
  if (is_interrupted) {
    is_interrupted = false;
    pthread_kill(pthread_self(), SIGUSR1);
  }
  return error;
}

namespace {

std::atomic<pthread_t> of_handler;
std::atomic<int> destroyed;
pthread_key_t of_ours;

void ask_in_handler(int) { of_handler = strata_pthread_self(); }

void* ask(void* asked) {
  is_interrupted = true;
  *static_cast<pthread_t*>(asked) = strata_pthread_self();
  EXPECT_FALSE(is_interrupted);
  EXPECT_EQ(strata_pthread_setspecific(of_ours, &of_ours), 0);
  return nullptr;
}

TEST(calling_record, a_handler_that_interrupts_its_making_finds_the_same_and_it_ends) {
  const auto before = std::signal(SIGUSR1, &ask_in_handler);
  ASSERT_EQ(strata_pthread_key_create(&of_ours, [](void*) { ++destroyed; }), 0);
  pthread_t asked{};
  pthread_t t{};
  ASSERT_EQ(pthread_create(&t, nullptr, &ask, &asked), 0);
  ASSERT_EQ(pthread_join(t, nullptr), 0);
  EXPECT_NE(asked, 0U);
  EXPECT_EQ(of_handler, asked);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(strata_pthread_kill(asked, 0), ESRCH);
  EXPECT_EQ(strata_pthread_kill(of_handler, 0), ESRCH);
  strata_pthread_key_delete(of_ours);
  std::signal(SIGUSR1, before);
}

}  // namespace
