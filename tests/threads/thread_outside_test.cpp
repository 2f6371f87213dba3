// SPDX-License-Identifier: Apache-2.0
// Threads that are made outside a runtime belong to one that the process has for them.
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "../common/refuse_threads.hpp"
#include "../sched/support.hpp"
#include "sched/scheduler.hpp"
#include "strata/condition_variable.hpp"
#include "strata/directory.hpp"
#include "strata/future.hpp"
#include "strata/group.hpp"
#include "strata/message.hpp"
#include "strata/registered_memory.hpp"
#include "strata/resource.hpp"
#include "strata/runtime.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"
#include "thread_support.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

TEST(thread_outside, has_a_runtime_of_the_process) {
  const auto is_inside = [] { return detail::this_worker().owner != nullptr; };
  EXPECT_FALSE(is_inside());
  mutex m;
  condition_variable changed;
  int turn = 0;
  detail::scheduler* home = nullptr;
  thread other([&, object = tracked(1)] {
    home = detail::this_worker().owner;
    for (int i = 0; i < 100; ++i) {
      std::unique_lock lock(m);
      changed.wait(lock, [&] { return turn == 1; });
      turn = 0;
      changed.notify_one();
    }
  });
  for (int i = 0; i < 100; ++i) {
    std::unique_lock lock(m);
    changed.wait(lock, [&] { return turn == 0; });
    turn = 1;
    changed.notify_one();
  }
  other.join();
  EXPECT_NE(home, nullptr);
  EXPECT_EQ(tracked::living(), 0);

  // With all that goes with it, from several OS threads at once.
  std::atomic<int> ran{0};
  std::vector<std::thread> outside;
  for (int i = 0; i < 4; ++i) {
    outside.emplace_back([&] {
      std::vector<thread> all;
      for (int k = 0; k < 50; ++k) {
        all.emplace_back([&] {
          EXPECT_EQ(detail::this_worker().owner, home);
          thread nested([&] { ++ran; });
          this_thread::yield();
          nested.join();
        });
      }
      for (thread& t : all) t.join();
    });
  }
  for (std::thread& t : outside) t.join();
  EXPECT_EQ(ran, 200);
  {
    latch begun(1);
    jthread stops({.name = "stops", .stack_bytes = 64 * 1024}, [&](const stop_token& stop) {
      begun.count_down();
      while (!stop.stop_requested()) this_thread::yield();
      ++ran;
    });
    begun.wait();
  }
  EXPECT_EQ(ran, 201);
  latch ended(1);
  thread([&] { ended.count_down(); }).detach();
  ended.wait();
  EXPECT_FALSE(is_inside());
}

TEST(thread_outside, arguments_are_copied_by_the_caller) {
  struct copied {
    std::thread::id by{};
    copied() = default;
    copied(const copied&) : by(std::this_thread::get_id()) {}
    copied(copied&&) = default;
  };
  const copied original;
  std::thread::id by;
  thread([&by](const copied& c) { by = c.by; }, original).join();
  EXPECT_EQ(by, std::this_thread::get_id());
}

TEST(thread_outside, what_cannot_be_moved_is_told) {
  for (int moves = 0;; ++moves) {
    try {
      thread t{refuses_to_move(moves)};
      t.join();
      EXPECT_GE(moves, 2);
      break;
    } catch (const std::runtime_error&) {
    }
  }
  expect_code(std::errc::invalid_argument, [] {
    thread t(thread_attributes{.stack_bytes = std::size_t{1} << 40}, [] {});
    t.join();
  });
}

TEST(thread_outside, identities_differ) {
  const thread::id here = this_thread::get_id();
  EXPECT_EQ(here, this_thread::get_id());
  EXPECT_NE(here, thread::id());
  thread::id there;
  std::thread([&] { there = this_thread::get_id(); }).join();
  EXPECT_NE(there, thread::id());
}

// Several at once: the first who asks makes what the messages of the process need.
TEST(thread_outside, has_endpoints) {
  constexpr int threads = 8;
  std::array<endpoint_id, threads> ids{};
  latch made(threads);
  std::vector<thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      endpoint& mine = this_thread::endpoint();
      ids[static_cast<std::size_t>(i)] = mine.id();
      made.arrive_and_wait();
      mine.send_value(ids[static_cast<std::size_t>((i + 1) % threads)], 1, i);
      EXPECT_EQ(mine.receive_value<int>(), (i + threads - 1) % threads);
    });
  }
  for (thread& t : all) t.join();
}

struct added_up {
  long sum = 0;
  long add(long n) { return sum += n; }
};

TEST(thread_outside, has_names_objects_and_groups) {
  thread([] {
    publish("a name", 5);
    EXPECT_EQ(await_name<int>("a name"), 5);
    EXPECT_TRUE(withdraw("a name"));
    EXPECT_FALSE(find_name<int>("a name").has_value());
    const named<added_up> sum("sum");
    EXPECT_EQ(resource<added_up>::find("sum").call<&added_up::add>(3L), 3);
    std::array<std::byte, 8> bytes{};
    EXPECT_EQ(registered_memory(bytes).networks(), 0U);
    run_group(3, [](group& g) { EXPECT_EQ(g.all_reduce(1, std::plus<>()), 3); });
  }).join();
}

TEST(thread_outside, has_messages_of_its_own_beside_a_runtime) {
  runtime rt(with_workers(1));
  endpoint_id there;
  rt.run([&] { there = endpoint().id(); });
  EXPECT_TRUE(there);
  thread([] {
    endpoint& mine = this_thread::endpoint();
    mine.send_value(mine.id(), 1, 7);
    EXPECT_EQ(mine.receive_value<int>(), 7);
  }).join();
  EXPECT_THROW(endpoint(), misuse_error);  // main() itself is in neither
}

// Far more than there are stacks of the size of kernel threads'.
TEST(thread_outside, many_are_alive_at_once) {
  if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "the sanitizer needs the addresses";
  constexpr int many = 20'000;
  latch all(many + 1);
  std::atomic<int> through{0};
  std::vector<thread> threads;
  threads.reserve(many);
  for (int i = 0; i < many; ++i) {
    threads.emplace_back([&] {
      all.arrive_and_wait();
      ++through;
    });
  }
  all.arrive_and_wait();
  for (thread& t : threads) t.join();
  EXPECT_EQ(through, many);
}

class thread_outside_death : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// What a standard program expects, and goes on after.
TEST_F(thread_outside_death, one_too_many_is_refused) {
  if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "the sanitizer needs the addresses";
  EXPECT_EXIT(
      {
        setenv("STRATA_STACK_BYTES", "1G", 1);
        setenv("STRATA_WORKERS", "1", 1);
        std::vector<thread> all;
        latch go(1);
        std::errc why{};
        while (why == std::errc{}) {
          try {
            all.emplace_back([&] { go.wait(); });
          } catch (const std::system_error& refusal) {
            why = static_cast<std::errc>(refusal.code().value());
          }
        }
        // By default a call waits for a thread only if there can be one.
        auto put_off = async([] { return 40; });
        const bool is_put_off = put_off.wait_for(0s) == future_status::deferred;
        const int sum = put_off.get() + (is_put_off ? 2 : 0);
        go.count_down();
        for (thread& t : all) t.join();
        int after = 0;
        thread([&] { after = 1; }).join();
        std::_Exit(why == std::errc::resource_unavailable_try_again && after == 1 ? sum : 1);
      },
      ::testing::ExitedWithCode(42), "");
}

// And who asks later has what there is then.
TEST_F(thread_outside_death, the_first_is_refused_where_there_are_no_workers) {
  if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "the sanitizer needs the addresses";
  EXPECT_EXIT(
      {
        refuse_threads();
        expect_code(std::errc::resource_unavailable_try_again, [] { thread([] {}).join(); });
        allow_threads();
        int ran = 0;
        thread([&] { ran = 42; }).join();
        std::_Exit(HasFailure() ? 1 : ran);
      },
      ::testing::ExitedWithCode(42), "");
}

std::size_t stack_bytes_of_a_thread() {
  std::size_t bytes = 0;
  thread([&] { bytes = detail::this_place().current->bytes; }).join();
  return bytes;
}

// As large as kernel threads have them, unless somebody has said a size.
TEST_F(thread_outside_death, an_empty_variable_says_no_size) {
  if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "the sanitizer needs the addresses";
  EXPECT_EXIT(
      {
        setenv("STRATA_STACK_BYTES", "", 1);
        std::_Exit(stack_bytes_of_a_thread() >= 1U << 20 ? 42 : 1);
      },
      ::testing::ExitedWithCode(42), "");
}

TEST_F(thread_outside_death, a_file_says_the_size_of_the_default) {
  EXPECT_EXIT(
      {
        const std::string file = ::testing::TempDir() + "strata-stacks-" + std::to_string(getpid());
        std::ofstream(file) << "stack-bytes = 256K\n";
        setenv("STRATA_CONFIG", file.c_str(), 1);
        const std::size_t bytes = stack_bytes_of_a_thread();
        std::remove(file.c_str());
        std::_Exit(bytes <= 512U << 10 ? 42 : 1);
      },
      ::testing::ExitedWithCode(42), "");
}

TEST_F(thread_outside_death, wrong_settings_end_the_program) {
  EXPECT_EXIT(
      {
        setenv("STRATA_WORKERS", "many", 1);
        thread([] {}).join();
      },
      ::testing::ExitedWithCode(2), "strata: .*many");
}

}  // namespace
}  // namespace strata::test
