// SPDX-License-Identifier: Apache-2.0
// strata/pthread.h from C++, inside a runtime and among its other threads.
#include <gtest/gtest.h>
#include <strata/pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <optional>
#include <strata/blocking.hpp>
#include <strata/fork_join.hpp>
#include <strata/resource.hpp>
#include <strata/runtime.hpp>
#include <strata/stop_token.hpp>
#include <strata/thread.hpp>
#include <string>
#include <thread>
#include <vector>

#include "../common/slow_builds.hpp"
#include "../common/thread_states.hpp"
#include "header_threads.hpp"

namespace {

using namespace header_threads;

std::uint64_t dispatched(const strata::runtime& rt) {
  std::uint64_t sum = 0;
  for (const auto& w : rt.stats().workers) sum += w.dispatched;
  return sum;
}

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

// What another thread is in ends in a destructor, which is not left in the middle.
void* end_it(void* it) {
  EXPECT_EQ(strata_pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr), 0);
  (*static_cast<std::function<void()>*>(it))();
  ++destroyed;
  strata_pthread_testcancel();
  return nullptr;
}

// `end` waits until may_end.
void cancel_during(std::function<void()> end, bool& may_end) {
  pthread_t t;
  ASSERT_EQ(strata_pthread_create(&t, nullptr, end_it, &end), 0);
  for (int i = 0; i < 5; ++i) strata::this_thread::yield();
  EXPECT_EQ(strata_pthread_cancel(t), 0);
  for (int i = 0; i < 5; ++i) strata::this_thread::yield();
  EXPECT_EQ(destroyed, 0);
  may_end = true;
  void* result = nullptr;
  EXPECT_EQ(strata_pthread_join(t, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_EQ(destroyed, 1);
}

TEST(pthread_header, asynchronous_cancellation_comes_after_the_end_of_a_stop_callback) {
  strata::runtime rt(workers(1));
  destroyed = 0;
  rt.run([] {
    strata::stop_source source;
    bool is_in = false;
    bool may_end = false;
    const auto stay = [&] {
      is_in = true;
      while (!may_end) strata::this_thread::yield();
    };
    std::optional<strata::stop_callback<decltype(stay)>> tell;
    tell.emplace(source.get_token(), stay);
    strata::thread requests([&] { source.request_stop(); });
    while (!is_in) strata::this_thread::yield();
    cancel_during([&] { tell.reset(); }, may_end);
    requests.join();
  });
}

class visited {
 public:
  explicit visited(bool& may_leave) : may_leave_(may_leave) {}
  void stay() {
    is_in = true;
    while (!may_leave_) strata::this_thread::yield();
  }
  bool is_in = false;

 private:
  const bool& may_leave_;
};

TEST(pthread_header, asynchronous_cancellation_comes_after_the_end_of_an_object_with_a_name) {
  strata::runtime rt(workers(1));
  destroyed = 0;
  rt.run([] {
    bool may_end = false;
    std::optional<strata::named<visited>> object;
    object.emplace("visited", may_end);
    strata::thread visitor([it = object->ref()] { it.call<&visited::stay>(); });
    while (!(*object)->is_in) strata::this_thread::yield();
    cancel_during([&] { object.reset(); }, may_end);
    visitor.join();
  });
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

// Where a fork has left the thread's own stack, as it always does a stack that the program gives.
void* exit_in_a_fork(void* argument) {
  const flag_at_end outer{destroyed};
  strata_cleanup handler;
  strata_cleanup_push(
      &handler, [](void*) { ++destroyed; }, nullptr);
  strata::fork2join(
      [&] {
        const flag_at_end inner{destroyed};
        EXPECT_TRUE(
            strata_pthread_equal(strata_pthread_self(), *static_cast<pthread_t*>(argument)));
        strata_pthread_exit(argument);
      },
      [] {});
  ADD_FAILURE() << "it has gone on";
  return nullptr;
}

void* wait_in_a_fork(void* begins) {
  const flag_at_end outer{destroyed};
  strata::fork2join(
      [&] {
        const flag_at_end inner{destroyed};
        sem_t never;
        strata_sem_init(&never, 0, 0);
        strata_sem_post(static_cast<sem_t*>(begins));
        strata_sem_wait(&never);
      },
      [] {});
  ADD_FAILURE() << "it has gone on";
  return nullptr;
}

TEST(pthread_header, a_thread_may_end_in_a_fork_on_another_stack) {
  std::vector<std::byte> memory(256 * 1024);
  pthread_attr_t given;
  ASSERT_EQ(pthread_attr_init(&given), 0);
  ASSERT_EQ(pthread_attr_setstack(&given, memory.data(), memory.size()), 0);
  strata::runtime rt(workers(1));
  destroyed = 0;
  rt.run([&] {
    pthread_t t;
    void* result = nullptr;
    ASSERT_EQ(strata_pthread_create(&t, &given, exit_in_a_fork, &t), 0);
    ASSERT_EQ(strata_pthread_join(t, &result), 0);
    EXPECT_EQ(result, &t);
  });
  EXPECT_EQ(destroyed, 3);
  destroyed = 0;
  rt.run([&] {
    pthread_t t;
    void* result = nullptr;
    sem_t begins;
    strata_sem_init(&begins, 0, 0);
    ASSERT_EQ(strata_pthread_create(&t, &given, wait_in_a_fork, &begins), 0);
    strata_sem_wait(&begins);
    EXPECT_EQ(strata_pthread_cancel(t), 0);
    ASSERT_EQ(strata_pthread_join(t, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
  });
  EXPECT_EQ(destroyed, 2);
  pthread_attr_destroy(&given);
}

void* wait_for_ever(void* semaphore) {
  strata_sem_wait(static_cast<sem_t*>(semaphore));
  ADD_FAILURE() << "nobody posts";
  return nullptr;
}

// Its handle stays valid.
TEST(pthread_header, a_wait_that_its_runtime_has_not_outlived_is_ended_by_nobody) {
  sem_t never;
  ASSERT_EQ(strata_sem_init(&never, 0, 0), 0);
  pthread_t t{};
  {
    strata::runtime rt(workers(1));
    rt.run([&] { ASSERT_EQ(strata_pthread_create(&t, nullptr, wait_for_ever, &never), 0); });
  }
  EXPECT_EQ(strata_pthread_cancel(t), 0);
  const auto before = std::signal(SIGUSR1, [](int) {});
  EXPECT_EQ(strata_pthread_kill(t, SIGUSR1), 0);
  std::signal(SIGUSR1, before);
}

void* write_with(void* lock) {
  strata_pthread_rwlock_wrlock(static_cast<pthread_rwlock_t*>(lock));
  ADD_FAILURE() << "nobody unlocks it";
  return nullptr;
}

TEST(pthread_header, a_writer_that_its_runtime_has_not_outlived_holds_back_no_readers) {
  pthread_rwlockattr_t writers_first;
  pthread_rwlockattr_init(&writers_first);
  pthread_rwlockattr_setkind_np(&writers_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_t lock;
  ASSERT_EQ(strata_pthread_rwlock_init(&lock, &writers_first), 0);
  ASSERT_EQ(strata_pthread_rwlock_rdlock(&lock), 0);
  {
    strata::runtime rt(workers(1));
    rt.run([&] {
      pthread_t t{};
      ASSERT_EQ(strata_pthread_create(&t, nullptr, write_with, &lock), 0);
      while (strata_pthread_rwlock_tryrdlock(&lock) == 0) {  // until it waits
        strata_pthread_rwlock_unlock(&lock);
        strata::this_thread::yield();
      }
    });
  }
  EXPECT_EQ(strata_pthread_rwlock_tryrdlock(&lock), 0);
  pthread_rwlockattr_destroy(&writers_first);
}

TEST(pthread_header, a_cancellation_comes_while_a_runtime_ends) {
  sem_t never;
  ASSERT_EQ(strata_sem_init(&never, 0, 0), 0);
  for (int round = 0; round < strata::test::scaled(300, 100); ++round) {
    pthread_t t{};
    std::atomic<bool> begins{false};
    std::thread outside;
    {
      strata::runtime rt(workers(1));
      rt.run([&] { ASSERT_EQ(strata_pthread_create(&t, nullptr, wait_for_ever, &never), 0); });
      outside = std::thread([&] {
        begins = true;
        EXPECT_EQ(strata_pthread_cancel(t), 0);
      });
      while (!begins) std::this_thread::yield();
    }
    outside.join();
  }
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
  pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_PROTECT);
  pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  EXPECT_EQ(strata_pthread_mutex_init(&m, &a), ENOTSUP);
  EXPECT_EQ(strata_pthread_mutex_init(&m, nullptr), 0);
  int ceiling = 0;
  EXPECT_EQ(strata_pthread_mutex_getprioceiling(&m, &ceiling), EINVAL);
  EXPECT_EQ(strata_pthread_mutex_setprioceiling(&m, 1, &ceiling), EINVAL);
  EXPECT_EQ(strata_pthread_cancel(pthread_t{1} << 63), ESRCH);
}

// Threads that are none of pthread_create()'s, of a runtime and of the system.
TEST(pthread_header, a_robust_mutex_is_left_by_threads_of_every_kind) {
  pthread_mutexattr_t a;
  pthread_mutex_t m;
  pthread_mutexattr_init(&a);
  pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  ASSERT_EQ(strata_pthread_mutex_init(&m, &a), 0);
  const auto repair = [&m] {
    EXPECT_EQ(strata_pthread_mutex_lock(&m), EOWNERDEAD);
    EXPECT_EQ(strata_pthread_mutex_consistent(&m), 0);
    EXPECT_EQ(strata_pthread_mutex_unlock(&m), 0);
  };
  const auto leave_it = [&m] { EXPECT_EQ(strata_pthread_mutex_lock(&m), 0); };
  std::thread(leave_it).join();
  repair();
  strata::runtime rt(workers(2));
  rt.run([&] {
    strata::thread(leave_it).join();
    repair();
    leave_it();
  });
  repair();
  EXPECT_EQ(strata_pthread_mutex_destroy(&m), 0);
}

// The child has neither the parent's thread that waits there, nor its turn: two bytes for two who
// want one each.
TEST(pthread_header, the_child_of_a_fork_waits_for_a_descriptor_where_a_thread_does) {
  if (strata::test::thread_sanitizer) GTEST_SKIP() << "no threads behind a fork";
  static int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  pthread_t waits;
  const auto receive = [](void* one) -> void* {
    strata_pthread_setname_np(strata_pthread_self(), "receives");
    return strata::io::recv(ends[0], one, 1, 0) == 1 ? one : nullptr;
  };
  char one = 0;
  ASSERT_EQ(strata_pthread_create(&waits, nullptr, receive, &one), 0);
  while (!strata::test::is_now("receives", "waiting for file descriptor"))
    std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    char other = 0;
    std::_Exit(write(ends[1], "xy", 2) == 2 && strata::io::recv(ends[0], &other, 1, 0) == 1 ? 42
                                                                                            : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
  void* result = nullptr;
  EXPECT_EQ(strata_pthread_join(waits, &result), 0);
  EXPECT_EQ(result, &one);
}

}  // namespace
