// SPDX-License-Identifier: Apache-2.0
// Runtimes start, let threads in, and stop; none of it leaves anything behind.
#include "strata/runtime.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../common/fib_forks.hpp"
#include "../common/thread_states.hpp"
#include "strata/blocking.hpp"
#include "strata/fiber.hpp"
#include "strata/semaphore.hpp"
#include "strata/task_scope.hpp"
#include "strata/thread.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

class runtime_workers : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(workers, runtime_workers, ::testing::Values(1, 2, 4, 8, 64),
                         ::testing::PrintToStringParamName());

TEST_P(runtime_workers, says_how_many_they_are) {
  const runtime rt(with_workers(GetParam()));
  EXPECT_EQ(rt.workers(), GetParam());
  EXPECT_EQ(rt.stats().workers.size(), GetParam());
  EXPECT_NE(rt.describe().find(std::to_string(GetParam()) + " worker"), std::string::npos);
}

TEST(runtime, calls_a_function_alike_inside_and_outside) {
  struct says_how {
    int operator()() & { return 1; }
    int operator()() && { return 2; }
  };
  runtime rt(with_workers(1));
  EXPECT_EQ(rt.run(says_how()), 1);
  EXPECT_EQ(rt.run([&] { return rt.run(says_how()); }), 1);
  rt.run([&] {
    int calls = 0;
    rt.run([&] { ++calls; });
    EXPECT_EQ(calls, 1);
  });
}

// More threads than places: some take a sleeper's place, some hand their root over.
TEST_P(runtime_workers, let_many_threads_in_at_once) {
  runtime rt(with_workers(GetParam()));
  constexpr int rounds = scaled(300, 40);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < rounds; ++round) {
        const int n = (t + round) % 12;
        static constexpr std::array<long, 12> expected{0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
        if (rt.run([n] { return fib(n); }) != expected[static_cast<std::size_t>(n)]) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(rt.stats().live_frames, 0);
}

TEST_P(runtime_workers, run_what_is_submitted_from_everywhere) {
  std::atomic<int> ran{0};
  constexpr int outside = scaled(2000, 200);
  {
    runtime rt(with_workers(GetParam()));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < outside; ++i) {
          rt.submit([&] {
            ++ran;
            rt.submit([&ran, text = std::make_unique<int>(1)] { ran += *text; });
          });
        }
      });
    }
    for (std::thread& t : threads) t.join();
    rt.wait_idle();
    EXPECT_EQ(ran, 8 * outside);
    rt.run([&] {
      for (int i = 0; i < 100; ++i) rt.submit([&] { fork2join([&] { ++ran; }, [&] { ++ran; }); });
    });
    // The destructor waits for the rest.
  }
  EXPECT_EQ(ran, 8 * outside + 200);
}

TEST_P(runtime_workers, know_when_they_are_idle) {
  runtime rt(with_workers(GetParam()));
  std::atomic<int> ran{0};
  for (int round = 0; round < scaled(300, 50); ++round) {
    const int before = ran;
    // What is submitted within outlives the root.
    rt.run([&] { rt.submit([&] { fork2join([&] { ++ran; }, [&] { ++ran; }); }); });
    rt.wait_idle();
    ASSERT_EQ(ran, before + 2);
  }
}

// The fewest looks for work that the workers have made in one of some rounds: in the others this
// thread may have lost its core before it waits.
template <class Round>
std::uint64_t fewest_looks(runtime& rt, const Round& round) {
  std::uint64_t fewest = UINT64_MAX;
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t before = rt.stats().total().steals_empty;
    round();
    fewest = std::min(fewest, rt.stats().total().steals_empty - before);
  }
  return fewest;
}

struct failing : threaded {
  void start() { throw std::runtime_error("a fiber"); }
};

TEST(runtime, searches_for_nothing_while_somebody_waits_until_all_sleep) {
  options wanted = with_workers(2);
  wanted.spin_us = 1'000'000;  // hundreds of thousands of looks
  runtime rt(wanted);
  EXPECT_LT(fewest_looks(rt,
                         [&] {
                           rt.submit([] {});
                           rt.wait_idle();
                         }),
            1000U);
  const auto fail = [&] {
    const auto wait = [] {
      completion never;
      token<failing>();
      never.wait();
    };
    EXPECT_THROW(rt.run(wait), std::runtime_error);
  };
  EXPECT_LT(fewest_looks(rt, fail), 1000U);
}

class run : public ::testing::Test {
 protected:
  runtime rt{with_workers(2)};
};

TEST_F(run, returns_what_the_function_returns) {
  EXPECT_EQ(rt.run([] { return 7; }), 7);
  EXPECT_EQ(*rt.run([] { return std::make_unique<int>(8); }), 8);
  static_assert(std::is_void_v<decltype(rt.run([] {}))>);
  int called = 0;
  auto function = [&called]() mutable { ++called; };
  rt.run(function);
  const auto constant = [&called] { return ++called; };
  EXPECT_EQ(rt.run(constant), 2);
}

TEST_F(run, rethrows_and_goes_on) {
  for (int round = 0; round < 20; ++round) {
    try {
      rt.run([] { throw std::out_of_range("from within"); });
      FAIL();
    } catch (const std::out_of_range& e) {
      EXPECT_STREQ(e.what(), "from within");
    }
    EXPECT_THROW(rt.run([]() -> std::string { throw 5; }), int);
    EXPECT_EQ(rt.run([] { return fib(10); }), 55);
  }
}

TEST_F(run, within_the_same_runtime_is_a_call) {
  const auto threads = rt.run([&] {
    const auto outer = std::this_thread::get_id();
    return std::pair(outer, rt.run([] { return std::this_thread::get_id(); }));
  });
  EXPECT_EQ(threads.first, threads.second);
  EXPECT_EQ(rt.run([&] { return rt.run([&] { return rt.run([] { return fib(8); }); }); }), 21);
}

TEST_F(run, within_a_task_of_another_runtime) {
  runtime other(with_workers(2));
  for (int round = 0; round < scaled(50, 10); ++round) {
    const long sum = rt.run([&] {
      auto [a, b] = fork2join([&] { return other.run([] { return fib(12); }); },
                              [&] { return other.run([] { return fib(13); }); });
      return a + b + fib(5);
    });
    EXPECT_EQ(sum, 144 + 233 + 5);
    EXPECT_THROW(rt.run([&] { other.run([] { throw std::runtime_error("inner"); }); }),
                 std::runtime_error);
  }
}

TEST_F(run, within_a_handler_of_another_runtimes_task) {
  runtime other(with_workers(2));
  rt.run([&] {
    try {
      throw std::runtime_error("outer");
    } catch (const std::runtime_error& outer) {
      EXPECT_THROW(other.run([] {
        fib(10);
        throw 1;
      }),
                   int);
      EXPECT_STREQ(outer.what(), "outer");
      EXPECT_THROW(throw, std::runtime_error);
    }
  });
}

TEST_F(run, on_a_guests_place_leaves_what_it_did_not_finish_to_the_worker) {
  runtime alone(with_workers(1));
  std::atomic<int> ran{0};
  alone.run([&] {
    for (int i = 0; i < 10; ++i) alone.submit([&] { ++ran; });
  });
  alone.wait_idle();
  EXPECT_EQ(ran, 10);
}

TEST_F(run, waiting_for_idleness_within_is_misuse) {
  rt.run([&] { EXPECT_THROW(rt.wait_idle(), misuse_error); });
  runtime other(with_workers(1));
  rt.run([&] { other.wait_idle(); });
  rt.run([&] { other.run([&] { EXPECT_THROW(rt.wait_idle(), misuse_error); }); });
  rt.run([&] { blocking([&] { EXPECT_THROW(rt.wait_idle(), misuse_error); }); });
}

TEST_F(run, a_root_may_wait_while_its_thread_works_for_others) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  // Two roots that wait for each other's stolen branches on two workers.
  std::array<std::atomic<bool>, 2> here{};
  const auto root = [&](std::size_t self) {
    rt.run([&] {
      here[self] = true;
      spin_until(here[1 - self]);
      for (int round = 0; round < 20; ++round) fib(12);
    });
  };
  std::thread second([&] { root(1); });
  root(0);
  second.join();
}

TEST(runtimes, several_live_at_once) {
  std::vector<std::unique_ptr<runtime>> all;
  for (unsigned i = 0; i < 10; ++i)
    all.push_back(std::make_unique<runtime>(with_workers(1 + i % 3)));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (auto& rt : all) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) wrong += rt->run([] { return fib(12); }) != 144;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  while (!all.empty()) all.erase(all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
}

TEST(runtimes, refuse_settings_out_of_range) {
  options bad;
  bad.workers = 5000;
  EXPECT_THROW(runtime{bad}, misuse_error);
  bad = {};
  bad.stack_bytes = 1024;
  EXPECT_THROW(runtime{bad}, misuse_error);
}

TEST(runtimes, give_the_handler_of_a_signal_back_unless_it_is_the_programs) {
  const auto handler = [] {
    struct sigaction now {};
    EXPECT_EQ(sigaction(SIGQUIT, nullptr, &now), 0);
    return now.sa_handler;
  };
  ASSERT_EQ(handler(), SIG_DFL);
  {
    const runtime rt(with_workers(1));
    EXPECT_NE(handler(), SIG_DFL);
  }
  EXPECT_EQ(handler(), SIG_DFL);
  const auto of_program = [](int) {};
  {
    const runtime rt(with_workers(1));
    std::signal(SIGQUIT, of_program);
  }
  EXPECT_EQ(handler(), +of_program);
  std::signal(SIGQUIT, SIG_DFL);
}

// What is written to standard error meanwhile.
class heard_errors {
 public:
  heard_errors() : kept_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    EXPECT_EQ(pipe(ends_.data()), 0);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~heard_errors() {
    dup2(kept_, STDERR_FILENO);
    for (const int fd : {kept_, ends_[0], ends_[1]}) close(fd);
  }
  heard_errors(const heard_errors&) = delete;
  heard_errors& operator=(const heard_errors&) = delete;
  // Waits for `what`, as long as a busy machine may need; false: it has not come.
  bool hear(const std::string& what) {
    while (text_.find(what) == std::string::npos) {
      pollfd one{ends_[0], POLLIN, 0};
      if (poll(&one, 1, 20'000) != 1) return false;
      std::array<char, 4096> some;
      const ssize_t n = read(ends_[0], some.data(), some.size());
      if (n <= 0) return false;
      text_.append(some.data(), static_cast<std::size_t>(n));
    }
    return true;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const int kept_;
  std::array<int, 2> ends_{};
  std::string text_;
};

// The caller of run() is the only worker, and nobody comes after it.
TEST(runtimes, answer_who_has_asked_a_guest_when_that_leaves) {
  heard_errors errors;
  runtime rt(with_workers(1));
  binary_semaphore never(0);
  std::optional<thread> waits;
  rt.run([&] {
    waits.emplace(thread_attributes{.name = "waits for ever"}, [&] { never.acquire(); });
    while (!is_now("waits for ever", "waiting for semaphore")) this_thread::yield();
    raise(SIGQUIT);
    EXPECT_TRUE(errors.hear("all workers are at work"));
  });
  EXPECT_TRUE(errors.hear("\"waits for ever\"")) << errors.text();
  rt.run([&] {
    never.release();
    waits->join();
  });
}

void exit_within_static_runtime(const std::function<void(runtime&)>& leave) {
  static runtime rt(with_workers(2));
  leave(rt);
}

// Who waited there for the end of the runtime would wait for itself.
TEST(runtimes_that_are_static, do_not_keep_their_tasks_from_exiting) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // Of the children: whoever looks for leaks there does not see the stack that main() had.
  setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
  const auto ends = testing::ExitedWithCode(42);
  const auto leave = [] { std::exit(42); };
  EXPECT_EXIT(exit_within_static_runtime([&](runtime& rt) { rt.run(leave); }), ends, "");
  EXPECT_EXIT(
      exit_within_static_runtime([&](runtime& rt) { rt.run([&] { thread(leave).join(); }); }), ends,
      "");
  EXPECT_EXIT(exit_within_static_runtime([&](runtime& rt) { rt.run([&] { blocking(leave); }); }),
              ends, "");
  EXPECT_EXIT(exit_within_static_runtime([&](runtime& rt) {
                runtime other(with_workers(1));
                rt.run([&] { other.run(leave); });
              }),
              ends, "");
  EXPECT_EXIT(exit_within_static_runtime([&](runtime& rt) {
                rt.submit(leave);
                for (;;) pause();
              }),
              ends, "");
}

void exit_while_tasks_wait(unsigned runs) {
  exit_within_static_runtime([&](runtime& rt) {
    auto& never = *new binary_semaphore(0);
    std::atomic<unsigned> begun{0};
    const auto wait = [&] {
      rt.run([&] {
        ++begun;
        never.acquire();
      });
    };
    for (unsigned i = 1; i < runs; ++i) std::thread(wait).detach();
    std::thread([&] {
      while (begun != runs) std::this_thread::yield();
      std::exit(42);
    }).detach();
    wait();
  });
}

// Nobody brings what they wait for, and who waits for a run() to return keeps a worker's place.
TEST(runtimes_that_are_static, do_not_keep_others_from_exiting_while_their_tasks_wait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("LSAN_OPTIONS", "detect_leaks=0", 1);  // as above
  for (const unsigned runs : {1U, 3U})
    EXPECT_EXIT(exit_while_tasks_wait(runs), testing::ExitedWithCode(42), "") << runs;
}

TEST(runtimes, of_a_thread_that_ends) {
  // The thread's own traces (its signal stack, for one) go with it, while the runtime stays.
  runtime rt(with_workers(2));
  for (int round = 0; round < 50; ++round) {
    std::thread([&] { EXPECT_EQ(rt.run([] { return fib(8); }), 21); }).join();
  }
}

}  // namespace
}  // namespace strata::test
