// SPDX-License-Identifier: Apache-2.0
#include "strata/blocking.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "../common/refuse_threads.hpp"
#include "../sched/support.hpp"
#include "sched/ticker.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

options one_worker() { return with_workers(1); }

TEST(blocking_call, returns_what_the_function_returns) {
  runtime rt(one_worker());
  rt.run([] {
    EXPECT_EQ(blocking([] { return 42; }), 42);
    EXPECT_EQ(blocking([] { return std::string(1000, 'x'); }), std::string(1000, 'x'));
    int n = 0;
    blocking([&] { n = 7; });
    EXPECT_EQ(n, 7);
  });
}

TEST(blocking_call, brings_exceptions_and_errno_home) {
  runtime rt(one_worker());
  rt.run([] {
    EXPECT_THROW(blocking([]() -> int { throw std::out_of_range("far away"); }), std::out_of_range);
    blocking([] { errno = EXDEV; });
    EXPECT_EQ(errno, EXDEV);
    const int seen = blocking([] { return errno; });
    EXPECT_EQ(seen, EXDEV);
  });
}

TEST(blocking_call, outside_a_runtime_is_a_call) {
  const pid_t here = gettid();
  EXPECT_EQ(blocking([] { return gettid(); }), here);
}

// The only worker would stand still for ever if the call were made on it.
TEST(blocking_call, leaves_the_worker_to_others) {
  runtime rt(one_worker());
  rt.run([] {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    thread writer([&] { EXPECT_EQ(::write(ends[1], "x", 1), 1); });
    char c = 0;
    EXPECT_EQ(blocking([&] { return ::read(ends[0], &c, 1); }), 1);
    EXPECT_EQ(c, 'x');
    writer.join();
    close(ends[0]);
    close(ends[1]);
  });
}

// Times that the kernel thread has waited since it asked last.
long waits_since() {
  static thread_local long before = 0;
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw - std::exchange(before, used.ru_nvcsw);
}

// For the call, and not for whoever has handed it over as well.
TEST(blocking_call, makes_its_kernel_thread_wait_once) {
  runtime rt(with_workers(2));
  std::vector<long> waits;
  rt.run([&] {
    for (int i = 0; i < 301; ++i) waits.push_back(blocking(waits_since));
  });
  std::ranges::nth_element(waits, waits.begin() + 150);
  EXPECT_LE(waits[150], 1);
}

TEST(blocking_call, of_more_threads_than_the_pool_has) {
  runtime rt(with_workers(0));  // as many as suit the machine
  rt.run([] {
    std::atomic<int> done{0};
    std::vector<thread> threads;
    for (int i = 0; i < 1000; ++i) {
      threads.emplace_back([&] { done += blocking([] { return usleep(100) == 0 ? 1 : 0; }); });
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(done, 1000);
  });
}

class without_os_threads : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "the sanitizer needs the addresses";
  }
};

// What f() returns in a runtime of a process of its own.
template <class F>
void expect_42(F f) {
  EXPECT_EXIT(
      {
        runtime rt(one_worker());
        const int result = rt.run(f);
        std::_Exit(result);
      },
      ::testing::ExitedWithCode(42), "");
}

TEST_F(without_os_threads, a_blocking_call_is_made_all_the_same) {
  expect_42([] {
    refuse_threads();
    return blocking([] { return 7; }) + blocking([] { return 35; });
  });
}

TEST_F(without_os_threads, waiting_on_a_descriptor_fails) {
  expect_42([] {
    int ends[2];
    if (pipe(ends) != 0) return 3;
    refuse_threads();
    char c = 0;
    if (io::read(ends[0], &c, 1) != -1 || errno != EAGAIN) return 4;
    if (::write(ends[1], "x", 1) != 1) return 5;
    return io::read(ends[0], &c, 1) == 1 ? 42 : 6;
  });
}

// Nor does it until a deadline, for which there is no thread.
TEST_F(without_os_threads, waiting_for_a_while_fails_too) {
  expect_42([] {
    int ends[2];
    if (pipe(ends) != 0) return 3;
    refuse_threads();
    char c = 0;
    if (io::read(ends[0], &c, 1, std::chrono::hours(1)) != -1 || errno != EAGAIN) return 4;
    if (io::wait(ends[0], POLLIN, std::chrono::hours(1)) != -1 || errno != EAGAIN) return 5;
    if (::write(ends[1], "x", 1) != 1) return 6;
    return io::read(ends[0], &c, 1, std::chrono::hours(1)) == 1 ? 42 : 7;
  });
}

// By its maker, and the program goes on.
TEST_F(without_os_threads, a_preemptible_thread_is_refused) {
  if (!detail::ticker::is_safe()) GTEST_SKIP() << "nobody can be interrupted in this program";
  expect_42([] {
    refuse_threads();
    try {
      thread(thread_attributes{.preemptible = true}, [] {}).join();
      return 3;
    } catch (const std::system_error& refused) {
      if (refused.code() != std::errc::resource_unavailable_try_again) return 4;
    }
    int ran = 0;
    thread([&] { ran = 42; }).join();
    return ran;
  });
}

}  // namespace
}  // namespace strata::test
