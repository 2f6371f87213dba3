// SPDX-License-Identifier: Apache-2.0
// Every thread has its own value, and it is cleaned up at the thread's end.
#include <memory>
#include <thread>
#include <vector>

#include "../sched/support.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/thread.hpp"
#include "strata/thread_specific.hpp"

namespace strata::test {
namespace {

TEST(thread_specific, each_thread_has_its_own) {
  runtime rt(with_workers(2));
  const int before = tracked::living();
  thread_specific_ptr<tracked> mine;
  rt.run([&] {
    EXPECT_EQ(mine.get(), nullptr);
    EXPECT_FALSE(mine);
    std::vector<thread> threads;
    latch all(20);
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([&mine, &all, i] {
        EXPECT_EQ(mine.get(), nullptr);
        mine.reset(new tracked(i));
        all.arrive_and_wait();
        this_thread::yield();
        EXPECT_TRUE(mine);
        EXPECT_EQ(mine->value(), i);
        EXPECT_EQ((*mine).value(), i);
      });
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(tracked::living(), before);
    EXPECT_EQ(mine.get(), nullptr);
  });
}

TEST(thread_specific, reset_and_release) {
  runtime rt(with_workers(1));
  const int before = tracked::living();
  rt.run([&] {
    thread_specific_ptr<tracked> mine;
    mine.reset(new tracked(1));
    tracked* const second = new tracked(2);
    mine.reset(second);
    EXPECT_EQ(tracked::living(), before + 1);
    mine.reset(second);  // the same: kept
    EXPECT_EQ(mine.get(), second);
    EXPECT_EQ(mine.release(), second);
    EXPECT_EQ(mine.get(), nullptr);
    EXPECT_EQ(mine.release(), nullptr);
    mine.reset(second);
    mine.reset();
    EXPECT_EQ(tracked::living(), before);
    mine.reset(new tracked(3));
  });
  EXPECT_EQ(tracked::living(), before);  // by the pointer's destructor
}

std::atomic<int> cleanups{0};
std::atomic<const void*> cleaned_in{nullptr};

TEST(thread_specific, own_cleanup_on_the_threads_own_stack) {
  runtime rt(with_workers(2));
  cleanups = 0;
  rt.run([] {
    static int value = 0;
    thread_specific_ptr<int> mine([](int* v) {
      ++*v;
      ++cleanups;
      char here = 0;
      cleaned_in = &here;
      this_thread::yield();  // may even wait
    });
    thread_specific_ptr<int> kept(nullptr);
    std::uintptr_t stack = 0;
    thread t([&] {
      char here = 0;
      stack = reinterpret_cast<std::uintptr_t>(&here);
      mine.reset(&value);
      kept.reset(&value);
    });
    t.join();
    EXPECT_EQ(value, 1);
    EXPECT_EQ(cleanups, 1);
    const auto there = reinterpret_cast<std::uintptr_t>(cleaned_in.load());
    if (!address_sanitizer) {
      EXPECT_LT(there > stack ? there - stack : stack - there, std::uintptr_t{1} << 20);
    }
  });
}

// Never ended, as a function's `static` would be.
thread_specific_ptr<int>& stubborn() {
  static auto* const pointer = new thread_specific_ptr<int>([](int* v) {
    ++cleanups;
    stubborn().reset(v);
  });
  return *pointer;
}

TEST(thread_specific, values_set_during_cleanup_get_four_rounds) {
  runtime rt(with_workers(1));
  cleanups = 0;
  static int value = 0;
  rt.run([] {
    thread t([] { stubborn().reset(&value); });
    t.join();
  });
  EXPECT_EQ(cleanups, 4);
}

// In a cleanup, the values of other keys are still there until it is their turn.
TEST(thread_specific, one_value_goes_at_a_time) {
  struct pair {
    thread_specific_ptr<pair>*own, *other;
    int* saw_other;
    ~pair() {
      EXPECT_EQ(own->get(), nullptr);
      if (other->get() != nullptr) ++*saw_other;
    }
  };
  runtime rt(with_workers(1));
  rt.run([] {
    thread_specific_ptr<pair> a;
    thread_specific_ptr<pair> b;
    int saw_other = 0;
    thread t([&] {
      a.reset(new pair{&a, &b, &saw_other});
      b.reset(new pair{&b, &a, &saw_other});
    });
    t.join();
    EXPECT_EQ(saw_other, 1);
  });
}

TEST(thread_specific, a_new_pointer_never_finds_an_old_value) {
  runtime rt(with_workers(1));
  rt.run([] {
    std::allocator<thread_specific_ptr<int>> memory;
    thread_specific_ptr<int>* const pointer = memory.allocate(1);
    binary_semaphore set(0), ask(0);
    std::construct_at(pointer);
    thread t([&] {
      pointer->reset(new int(1));
      set.release();
      ask.acquire();
      EXPECT_EQ(pointer->get(), nullptr);
    });
    set.acquire();
    std::destroy_at(pointer);
    std::construct_at(pointer);  // at the same address
    ask.release();
    t.join();
    std::destroy_at(pointer);
    memory.deallocate(pointer, 1);
  });
}

TEST(thread_specific, in_the_root_and_in_branches) {
  runtime rt(with_workers(2));
  const int before = tracked::living();
  thread_specific_ptr<tracked> mine;
  for (int i = 0; i < 20; ++i) {
    rt.run([&] {
      EXPECT_EQ(mine.get(), nullptr);
      mine.reset(new tracked(i));
      fork2join([&] { EXPECT_EQ(mine->value(), i); },
                [&] {
                  if (mine.get() == nullptr) mine.reset(new tracked(-1));
                  this_thread::yield();
                  EXPECT_TRUE(mine->value() == i || mine->value() == -1);
                });
      EXPECT_EQ(mine->value(), i);
    });
  }
  rt.wait_idle();
  EXPECT_EQ(tracked::living(), before);
}

TEST(thread_specific, the_roots_values_end_before_run_returns) {
  runtime rt(with_workers(4));
  thread_specific_ptr<tracked> mine;
  const int before = tracked::living();
  for (int i = 0; i < 200; ++i) {
    rt.run([&] {
      mine.reset(new tracked(i));
      // So that the root may end on another worker.
      fork2join([] { this_thread::yield(); }, [] { this_thread::yield(); });
    });
    ASSERT_EQ(tracked::living(), before);
  }
}

TEST(thread_specific, in_threads_outside_a_runtime) {
  const int before = tracked::living();
  thread_specific_ptr<tracked> mine;
  mine.reset(new tracked(1));
  std::thread other([&] {
    EXPECT_EQ(mine.get(), nullptr);
    mine.reset(new tracked(2));
  });
  other.join();
  EXPECT_EQ(tracked::living(), before + 1);
  EXPECT_EQ(mine->value(), 1);
  // A task is not the thread that called run().
  runtime rt(with_workers(1));
  rt.run([&] { EXPECT_EQ(mine.get(), nullptr); });
  EXPECT_EQ(mine->value(), 1);
  mine.reset();
  EXPECT_EQ(tracked::living(), before);
}

// A block that a task gets only now must not make it somebody else.
TEST(thread_specific, identity_stays_the_same) {
  runtime rt(with_workers(1));
  rt.run([] {
    const thread::id before = this_thread::get_id();
    recursive_mutex m;
    m.lock();
    thread_specific_ptr<int> mine;
    mine.reset(new int(1));
    EXPECT_EQ(this_thread::get_id(), before);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
    m.unlock();
  });
}

}  // namespace
}  // namespace strata::test
