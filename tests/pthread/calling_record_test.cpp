// SPDX-License-Identifier: Apache-2.0
// The record of a thread that we have not made, asked for by a handler that has interrupted its
// making, or an allocation, or the making of another thread.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <strata/pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>

namespace {
thread_local bool is_interrupted = false;
thread_local bool is_interrupted_by_allocation = false;
bool is_in_handler = false;
bool has_allocated = false;
}  // namespace

// In front of the C library's, which nothing in a handler may call.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void* malloc(std::size_t bytes) noexcept {
  has_allocated = has_allocated || is_in_handler;
  return __libc_malloc(bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  has_allocated = has_allocated || is_in_handler;
  if (is_interrupted_by_allocation) {
    is_interrupted_by_allocation = false;
    pthread_kill(pthread_self(), SIGUSR1);
  }
  return __libc_memalign(alignment, bytes);
}
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

void ask_without_memory(int) {
  is_in_handler = true;
  of_handler = strata_pthread_self();
  is_in_handler = false;
}
// Before all others: only the first of all needs memory.
const bool first_call_allocates = [] {
  const auto before = std::signal(SIGUSR1, &ask_without_memory);
  std::raise(SIGUSR1);
  std::signal(SIGUSR1, before);
  return has_allocated;
}();

TEST(calling_record, the_first_call_of_all_may_interrupt_an_allocation) {
  EXPECT_FALSE(first_call_allocates);
}

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

sem_t may_end;
void* stay(void*) {
  strata_sem_wait(&may_end);
  return nullptr;
}
// So many that the records of some are allocated, by who has none of its own.
void* make_many(void*) {
  std::array<pthread_t, 600> all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 200) is_interrupted_by_allocation = true;  // what else is allocated once, has been
    EXPECT_EQ(strata_pthread_create(&all[i], nullptr, &stay, nullptr), 0);
  }
  EXPECT_FALSE(is_interrupted_by_allocation);
  for (std::size_t i = 0; i < all.size(); ++i) strata_sem_post(&may_end);
  for (const pthread_t t : all) EXPECT_EQ(strata_pthread_join(t, nullptr), 0);
  return nullptr;
}

TEST(calling_record, a_handler_that_interrupts_the_making_of_a_thread_is_given_one) {
  const auto before = std::signal(SIGUSR1, &ask_in_handler);
  of_handler = 0;
  strata_sem_init(&may_end, 0, 0);
  pthread_t t{};
  ASSERT_EQ(pthread_create(&t, nullptr, &make_many, nullptr), 0);
  ASSERT_EQ(pthread_join(t, nullptr), 0);
  EXPECT_NE(of_handler, 0U);
  std::signal(SIGUSR1, before);
}

}  // namespace
