// SPDX-License-Identifier: Apache-2.0
// A fork that goes on on a fresh stack, at the end of its own one or in a preemptible thread, is
// still its thread's.
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "../common/thread_states.hpp"
#include "../sched/support.hpp"
#include "sched/scheduler.hpp"
#include "sched/ticker.hpp"
#include "strata/detail/join.hpp"
#include "strata/mutex.hpp"
#include "strata/pthread.h"
#include "strata/thread.hpp"
#include "strata/thread_specific.hpp"

namespace strata::test {
namespace {

// Calls f where the calling stack ends: a fork there goes on on another one.
[[gnu::noinline]] void at_end_of_stack(const std::function<void()>& f) {
  if (detail::stack_is_low()) {
    f();
  } else {
    at_end_of_stack(f);
  }
  asm volatile("");  // not as a jump
}

// The left branch of a fork, which is seen to be on another stack than the fork.
void fork_on_fresh_stack(const std::function<void()>& f) {
  const detail::stack* const here = &detail::calling_stack();
  fork2join(
      [&] {
        EXPECT_NE(&detail::calling_stack(), here);
        f();
      },
      [] {});
}

// Calls f in each kind of task, where a fork needs a fresh stack.
void in_each_kind(const std::function<void()>& f) {
  runtime rt(with_workers(2));
  rt.run([&] { at_end_of_stack(f); });
  rt.run([&] {
    const thread_attributes kinds[] = {{}, {.pinned = true}, {.stack_bytes = 64 * 1024}};
    for (const thread_attributes& kind : kinds) thread(kind, [&] { at_end_of_stack(f); }).join();
    // Elsewhere it is a thread as any other.
    if (detail::ticker::is_safe()) thread({.preemptible = true}, f).join();
  });
}

TEST(fresh_stack, shares_the_values_of_its_thread) {
  const int before = tracked::living();
  {
    thread_specific_ptr<tracked> first, second;
    in_each_kind([&] {
      first.reset(new tracked(1));
      fork_on_fresh_stack([&] {
        ASSERT_NE(first.get(), nullptr);
        EXPECT_EQ(first->value(), 1);
        first.reset(new tracked(2));
        second.reset(new tracked(3));
      });
      EXPECT_EQ(first->value(), 2);
      ASSERT_NE(second.get(), nullptr);
      EXPECT_EQ(second->value(), 3);
    });
  }
  EXPECT_EQ(tracked::living(), before);
}

TEST(fresh_stack, keeps_a_first_value_for_its_task) {
  thread_specific_ptr<tracked> mine;
  in_each_kind([&] {
    fork_on_fresh_stack([&] { mine.reset(new tracked(1)); });
    ASSERT_NE(mine.get(), nullptr);
    EXPECT_EQ(mine->value(), 1);
  });
}

TEST(fresh_stack, runs_in_its_thread) {
  in_each_kind([] {
    const thread::id id = this_thread::get_id();
    const detail::place* const pinned_to = detail::calling_stack().pinned_to;
    const auto is_here = [&] {
      EXPECT_EQ(this_thread::get_id(), id);
      EXPECT_EQ(detail::calling_stack().pinned_to, pinned_to);
      EXPECT_TRUE(pinned_to == nullptr || pinned_to == &detail::this_place());
    };
    fork_on_fresh_stack([&] {
      is_here();
      for (int i = 0; i < 100; ++i) this_thread::yield();
      is_here();
      at_end_of_stack([&] { fork_on_fresh_stack(is_here); });
    });
    is_here();
  });
}

TEST(fresh_stack, has_the_locks_of_its_thread) {
  recursive_mutex ours;
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init(&recursive);
  pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_t posix;
  strata_pthread_mutex_init(&posix, &recursive);
  in_each_kind([&] {
    ours.lock();
    strata_pthread_mutex_lock(&posix);
    fork_on_fresh_stack([&] {
      const bool has_it = ours.try_lock();
      EXPECT_TRUE(has_it);
      if (has_it) ours.unlock();
      const int error = strata_pthread_mutex_trylock(&posix);
      EXPECT_EQ(error, 0);
      if (error == 0) strata_pthread_mutex_unlock(&posix);
    });
    strata_pthread_mutex_unlock(&posix);
    ours.unlock();
  });
  strata_pthread_mutex_destroy(&posix);
}

TEST(fresh_stack, is_shown_by_the_name_of_its_thread) {
  if (!detail::ticker::is_safe()) GTEST_SKIP() << "no thread is interrupted in this program";
  runtime rt(with_workers(1));
  rt.run([] {
    thread({.name = "forks", .preemptible = true}, [] {
      fork_on_fresh_stack([] {
        const std::string text = threads_text();
        EXPECT_NE(text.find("\"forks\": waiting for task to end"), std::string::npos) << text;
        EXPECT_NE(text.find("\"forks\": running on worker 0, asks for this"), std::string::npos)
            << text;
      });
    }).join();
  });
}

TEST(fresh_stack, gives_its_thread_back_where_it_throws) {
  thread_specific_ptr<tracked> mine;
  in_each_kind([&] {
    EXPECT_THROW(fork_on_fresh_stack([&] {
                   mine.reset(new tracked(1));
                   throw std::runtime_error("from the fork");
                 }),
                 std::runtime_error);
    ASSERT_NE(mine.get(), nullptr);
  });
}

// Whoever has taken a branch runs it as a task of its own.
TEST(fresh_stack, does_not_lend_its_thread_to_thieves) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  runtime rt(with_workers(2));
  rt.run([] {
    thread_specific_ptr<tracked> mine;
    at_end_of_stack([&] {
      mine.reset(new tracked(1));
      const thread::id id = this_thread::get_id();
      fork_stolen([&] { EXPECT_NE(mine.get(), nullptr); },
                  [&] {
                    EXPECT_EQ(mine.get(), nullptr);
                    EXPECT_NE(this_thread::get_id(), id);
                  });
    });
  });
}

}  // namespace
}  // namespace strata::test
