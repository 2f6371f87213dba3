// SPDX-License-Identifier: Apache-2.0
// Where memory runs out a thread too many is refused, and those that wait can still be woken. Each
// in a process of its own.
#include <gtest/gtest.h>
#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "../common/counted.hpp"
#include "../common/refuse_threads.hpp"
#include "../sched/support.hpp"
#include "strata/blocking.hpp"
#include "strata/dump_threads.hpp"
#include "strata/fiber.hpp"
#include "strata/thread.hpp"
#include "strata/thread_specific.hpp"

namespace strata::test {
namespace {

// From now on malloc() has nothing left.
void empty_memory() {
  refuse_threads();
  void* volatile last = nullptr;
  for (std::size_t bytes = std::size_t{1} << 20; bytes >= 16; bytes /= 2) {
    while (void* const p = std::malloc(bytes)) {
      *static_cast<void**>(p) = last;
      last = p;
    }
  }
}

class without_memory : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "the sanitizer needs the addresses";
  }
  static options settings() {
    options wanted = with_workers(2);
    wanted.policy = GetParam();
    return wanted;
  }
  static constexpr int many = 3000;
  // Many threads, each of which has begun and waits before the next is made, so that no queue ever
  // had room for all of them; and no memory when they go on.
  static void wake_all(
      const std::function<void()>& wait, const std::function<void()>& wake,
      const std::function<void()>& begin = [] {}) {
    runtime rt(settings());
    rt.run([&] {
      begin();
      std::vector<thread> threads;
      threads.reserve(many);
      std::atomic<int> begun{0};
      for (int i = 0; i < many; ++i) {
        threads.emplace_back([&] {
          ++begun;
          wait();
        });
        while (begun != i + 1) this_thread::yield();
      }
      empty_memory();
      wake();
      for (thread& t : threads) t.join();
      std::_Exit(42);
    });
  }
};

TEST_P(without_memory, those_who_wait_for_a_semaphore_go_on) {
  counting_semaphore<> go(0);
  EXPECT_EXIT(wake_all([&] { go.acquire(); }, [&] { go.release(many); }),
              testing::ExitedWithCode(42), "");
}

TEST_P(without_memory, those_who_wait_for_a_condition_go_on) {
  mutex m;
  condition_variable changed;
  bool done = false;
  const auto wait = [&] {
    std::unique_lock lock(m);
    changed.wait(lock, [&] { return done; });
  };
  const auto wake = [&] {
    const std::lock_guard lock(m);
    done = true;
    changed.notify_all();
  };
  EXPECT_EXIT(wake_all(wait, wake), testing::ExitedWithCode(42), "");
}

TEST_P(without_memory, a_barrier_is_passed) {
  std::optional<barrier<>> all;
  const auto twice = [&] {
    all->arrive_and_wait();
    all->arrive_and_wait();
  };
  EXPECT_EXIT(wake_all(twice, twice, [&] { all.emplace(many + 1); }), testing::ExitedWithCode(42),
              "");
}

TEST_P(without_memory, a_thread_is_refused_as_by_the_standard) {
  const auto program = [] {
    runtime rt(settings());
    rt.run([&] {
      std::vector<thread> threads;
      threads.reserve(1'000'000);
      counting_semaphore<> go(0);
      refuse_threads();
      try {
        for (;;) threads.emplace_back([&] { go.acquire(); });
      } catch (const std::system_error& refused) {
        if (refused.code() != std::errc::resource_unavailable_try_again) std::_Exit(3);
      }
      go.release(static_cast<std::ptrdiff_t>(threads.size()));
      for (thread& t : threads) t.join();
      int ran = 0;
      thread([&] { ran = 42; }).join();
      std::_Exit(ran);
    });
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(42), "");
}

// From outside, while the worker that alone can free what they leave is in something long, so that
// its queue gets full.
TEST_P(without_memory, threads_that_have_ended_are_joined) {
  constexpr std::size_t many_ended = 20'000;
  const auto program = [] {
    options wanted = settings();
    wanted.workers = 1;
    runtime rt(wanted);
    std::vector<thread> threads;
    threads.reserve(many_ended);
    rt.run([&] {
      while (threads.size() != many_ended) {
        threads.emplace_back([] {});
        this_thread::yield();
      }
    });
    rt.wait_idle();
    std::atomic<bool> is_busy{false};
    std::atomic<std::size_t> joined{0};
    std::thread busy([&] {
      rt.run([&] {
        is_busy = true;
        // Until all are joined, or who joins them waits for us.
        for (std::size_t before = 0; before == 0 || joined != before;) {
          before = joined;
          for (int i = 0; i < 1'000'000; ++i) (void)joined.load();
        }
      });
    });
    while (!is_busy) std::this_thread::yield();
    empty_memory();
    for (thread& t : threads) {
      t.join();
      ++joined;
    }
    std::_Exit(42);
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(42), "");
}

// More than a worker's deque has room for: the rest is put back into it by the dispatcher.
TEST_P(without_memory, tokens_that_found_no_room_are_run) {
  constexpr int tokens = 20'000;
  const auto program = [] {
    options wanted = settings();
    wanted.workers = 1;
    runtime rt(wanted);
    rt.run([] {
      std::atomic<int> ran{0};
      {
        completion first;  // who waits for one needs room in a list
        token<counted>(&ran, first.sptr());
        first.wait();
      }
      completion all(tokens);
      for (int i = 0; i < tokens; ++i) token<counted>(&ran, all.sptr());
      empty_memory();
      all.wait();
      std::_Exit(ran == tokens + 1 ? 42 : 3);
    });
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(42), "");
}

TEST_P(without_memory, a_thread_with_values_of_its_own_ends) {
  static std::atomic<int> ended{0};
  const auto program = [] {
    runtime rt(settings());
    rt.run([] {
      using value = thread_specific_ptr<int>;
      constexpr int values = 100;
      std::vector<std::unique_ptr<value>> all;
      for (int i = 0; i < values; ++i)
        all.push_back(std::make_unique<value>([](int*) { ++ended; }));
      int something = 0;
      binary_semaphore are_set(0), go(0);
      thread t([&] {
        for (const auto& one : all) one->reset(&something);
        are_set.release();
        go.acquire();
      });
      are_set.acquire();
      empty_memory();
      go.release();
      t.join();
      std::_Exit(ended == values ? 42 : 3);
    });
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(42), "");
}

TEST_P(without_memory, a_wait_for_a_descriptor_is_refused) {
  const auto program = [] {
    runtime rt(settings());
    rt.run([&] {
      std::array<int, 2> ends{};
      if (pipe(ends.data()) != 0) std::_Exit(3);
      // The first makes what is needed once.
      if (io::wait(ends[0], POLLIN, std::chrono::milliseconds(1)) != -1) std::_Exit(4);
      empty_memory();
      if (io::wait(ends[0], POLLIN) != -1) std::_Exit(5);
      std::_Exit(errno == ENOMEM ? 42 : 6);
    });
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(42), "");
}

// Inside a runtime an OS thread looks, which has no memory either.
TEST_P(without_memory, a_dump_is_refused) {
  const auto text_is_refused = [] {
    try {
      (void)threads_text();
      return false;
    } catch (const std::bad_alloc&) {
      return true;
    }
  };
  const auto program = [&] {
    mallopt(M_ARENA_MAX, 1);  // its threads have none of their own
    runtime rt(settings());
    rt.run([&] {
      std::thread([] {}).join();  // its stack is kept for the next
      std::array<void*, 4> little{};
      for (std::size_t i = 0; i < little.size(); ++i) little[i] = std::malloc(16 * (i + 1));
      empty_memory();
      for (void* const p : little) std::free(p);  // what it takes to begin a thread
      if (!text_is_refused()) std::_Exit(3);
    });
    std::_Exit(text_is_refused() ? 42 : 4);
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(42), "");
}

TEST_P(without_memory, a_dump_is_refused_the_thread_that_it_needs) {
  const auto program = [] {
    runtime rt(settings());
    rt.run([] {
      refuse_threads();
      try {
        (void)threads_text();
        std::_Exit(3);
      } catch (const std::system_error& refused) {
        std::_Exit(refused.code() == std::errc::resource_unavailable_try_again ? 42 : 4);
      }
    });
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(42), "");
}

TEST_P(without_memory, a_dump_on_a_signal_says_that_it_is_refused) {
  const auto program = [] {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0 || dup2(ends[1], STDERR_FILENO) < 0) std::_Exit(3);
    options wanted = settings();
    wanted.dump_signal = "USR1";
    mallopt(M_ARENA_MAX, 1);
    runtime rt(wanted);
    empty_memory();
    raise(SIGUSR1);
    char line[256];
    const ssize_t n = read(ends[0], line, sizeof line);
    const std::string_view refused = "strata: no memory for what was asked for by a signal\n";
    std::_Exit(n > 0 && std::string_view(line, static_cast<std::size_t>(n)) == refused ? 42 : 4);
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(42), "");
}

INSTANTIATE_TEST_SUITE_P(policies, without_memory, testing::Values("steal", "rotator", "locked"));

}  // namespace
}  // namespace strata::test
