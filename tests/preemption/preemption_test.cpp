// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "../common/interrupted_one.hpp"
#include "../sched/support.hpp"
#include "sched/ticker.hpp"
#include "strata/condition_variable.hpp"
#include "strata/directory.hpp"
#include "strata/fiber_sync.hpp"
#include "strata/fork_join.hpp"
#include "strata/message.hpp"
#include "strata/parallel.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

class preemption : public testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    if (!detail::ticker::is_safe()) GTEST_SKIP() << "nobody can be interrupted in this program";
  }
  static options settings() {
    options o = with_workers(GetParam());
    o.preempt_us = 500;
    return o;
  }
};

thread_attributes preemptible() { return {.name = "endless", .preemptible = true}; }

// As many threads as there are workers compute until they are stopped, and one thread more stops
// them. compute(i, until_stop).
template <class Compute>
void expect_that_others_come(unsigned workers, const Compute& compute) {
  std::atomic<bool> stop{false};
  std::atomic<unsigned> begun{0};
  const auto until_stop = [&] {
    ++begun;
    while (!stop.load(std::memory_order_relaxed)) {
    }
  };
  std::vector<thread> loops;
  for (unsigned i = 0; i < workers; ++i)
    loops.emplace_back(preemptible(), [&, i] { compute(i, until_stop); });
  thread other([&] {
    while (begun != workers) this_thread::yield();
    stop = true;
  });
  other.join();
  for (thread& t : loops) t.join();
}

TEST_P(preemption, an_endless_loop_does_not_starve_others) {
  runtime rt(settings());
  rt.run([&] {
    expect_that_others_come(GetParam(), [](unsigned, const auto& until_stop) { until_stop(); });
  });
  EXPECT_GT(rt.stats().total().preemptions, 0u);
}

// A loop has the thread's own stack: on another one it would not be interrupted.
TEST_P(preemption, an_endless_body_of_a_loop_does_not_starve_others) {
  runtime rt(settings());
  rt.run([&] {
    expect_that_others_come(GetParam(), [](unsigned i, const auto& until_stop) {
      const auto body = [&](int) {
        until_stop();
        return 1;
      };
      if (i % 2 == 0)
        parallel_for(0, 1, body);
      else
        EXPECT_EQ(parallel_reduce(0, 1, 0, body, std::plus<>()), 1);
    });
  });
  EXPECT_GT(rt.stats().total().preemptions, 0u);
}

// Every register and every local variable is as it was, vector registers included.
TEST_P(preemption, what_is_computed_stays_right) {
  runtime rt(settings());
  const auto sum_of = [](unsigned seed) {
    double sum = 0;
    std::uint64_t x = seed;
    for (int i = 0; i < 3'000'000; ++i) {
      x = x * 6364136223846793005ULL + 1442695040888963407ULL;
      sum += std::sqrt(static_cast<double>(x >> 40)) * 0.5;
    }
    return sum;
  };
  std::vector<double> right;
  for (unsigned i = 0; i < 8; ++i) right.push_back(sum_of(i));
  rt.run([&] {
    std::vector<double> got(8);
    std::vector<thread> threads;
    for (unsigned i = 0; i < 8; ++i)
      threads.emplace_back(preemptible(), [&, i] { got[i] = sum_of(i); });
    for (thread& t : threads) t.join();
    EXPECT_EQ(got, right);
  });
}

// All that the runtime and the C library keep to themselves while they are at it.
TEST_P(preemption, allocation_locks_and_forks_survive_it) {
  runtime rt(settings());
  rt.run([&] {
    mutex m;
    long counter = 0;
    std::vector<thread> threads;
    for (unsigned i = 0; i < 8; ++i) {
      threads.emplace_back(preemptible(), [&, i] {
        for (int round = 0; round < 2000; ++round) {
          const std::string text(static_cast<std::size_t>(round % 3000),
                                 static_cast<char>('a' + i));
          const auto copy = std::make_unique<std::string>(text);
          if (round % 16 == 0) {
            const auto [a, b] =
                fork2join([&] { return text.size(); }, [&] { return copy->size(); });
            ASSERT_EQ(a, b);
          }
          if (round % 32 == 0) thread([] {}).join();
          const std::lock_guard lock(m);
          ++counter;
        }
      });
    }
    for (thread& t : threads) t.join();
    EXPECT_EQ(counter, 8 * 2000);
  });
  EXPECT_EQ(rt.stats().live_frames, 0);
}

// And what it keeps to itself for messages and names.
TEST_P(preemption, messages_and_names_survive_it) {
  runtime rt(settings());
  rt.run([&] {
    publish("seven", 7);
    std::vector<thread> threads;
    for (unsigned i = 0; i < 4; ++i) {
      threads.emplace_back(preemptible(), [] {
        endpoint mine;
        std::array<std::byte, 8> buffer;
        for (int round = 0; round < 30'000; ++round) {
          ASSERT_EQ(find_name<int>("seven"), 7);
          (void)mine.start_receive(buffer);  // cancelled at once
          mine.send_value(mine.id(), 1, round);
          ASSERT_EQ(mine.receive_value<int>(), round);
        }
      });
    }
    for (thread& t : threads) t.join();
  });
}

// A tick can come while the handler of another is still on top of a library's code, whose lock
// nobody else would get if that were taken for code of the program.
TEST_P(preemption, ticks_that_crowd_interrupt_no_library) {
  runtime rt(settings());
  rt.run([&] {
    std::atomic<bool> over{false};
    std::thread crowd = crowd_of_ticks(over);
    std::vector<thread> threads;
    for (unsigned i = 0; i < 8; ++i) {
      threads.emplace_back(preemptible(), [&] {
        for (std::size_t round = 0; !over; ++round) {
          // Of sizes that the C library allocates with a lock.
          std::vector<std::unique_ptr<char[]>> some;
          for (std::size_t k = 0; k < 4; ++k)
            some.push_back(std::make_unique<char[]>(2000 + (round * 7 + k) % 5000));
        }
      });
    }
    for (thread& t : threads) t.join();
    crowd.join();
  });
}

template <class Use>
void share_with_an_interrupted_one(const options& settings, const Use& use) {
  runtime rt(settings);
  rt.run([&] { test::share_with_an_interrupted_one(use); });
}

TEST_P(preemption, nobody_keeps_the_lock_of_a_stop_token) {
  const std::stop_source source;
  const std::stop_token stop = source.get_token();
  share_with_an_interrupted_one(settings(), [&](const auto& goes_on) {
    mutex m;
    condition_variable_any changed;
    std::unique_lock lock(m);
    while (goes_on()) changed.wait(lock, stop, [] { return true; });
  });
}

// What fibers synchronize with: templates, which are code of the program.
TEST_P(preemption, nobody_keeps_the_lock_of_a_reduction_box) {
  long never = 0;
  const auto add = [](long a, long b) { return a + b; };
  reduction_box<long, decltype(add)> box(UINT64_MAX, 0, add, global_ptr<long>(0, &never), {});
  share_with_an_interrupted_one(settings(), [&](const auto& goes_on) {
    while (goes_on()) box.contribute(1);
  });
}

TEST_P(preemption, nobody_keeps_the_lock_of_a_channel) {
  channel<int> numbers;
  share_with_an_interrupted_one(settings(), [&](const auto& goes_on) {
    while (goes_on()) {
      int got = 0;
      completion come;
      numbers.send(7);
      numbers.receive(to_global(&got), come.sptr());
      come.wait();
      ASSERT_EQ(got, 7);
    }
  });
}

TEST_P(preemption, nobody_keeps_the_lock_of_an_i_structure) {
  i_structure<int> number;
  std::atomic<bool> is_written{false};
  share_with_an_interrupted_one(settings(), [&](const auto& goes_on) {
    while (goes_on()) {
      if (!is_written.exchange(true)) number.put(7);
      int got = 0;
      completion come;
      number.get(to_global(&got), come.sptr());
      come.wait();
      ASSERT_EQ(got, 7);
    }
  });
}

TEST_P(preemption, nobody_keeps_the_lock_of_who_looks_for_deadlocks) {
  options watched = settings();
  watched.detect_deadlock = true;
  mutex m;
  share_with_an_interrupted_one(watched, [&](const auto& goes_on) {
    while (goes_on()) const std::lock_guard lock(m);
  });
}

// Nor is the queue half written into which whoever is enabled goes.
TEST_P(preemption, signals_do_not_get_lost) {
  share_with_an_interrupted_one(settings(), [](const auto& goes_on) {
    while (goes_on()) {
      completion done;
      sync(done.sptr());
      done.wait();
    }
  });
}

TEST_P(preemption, nobody_keeps_the_place_of_another_runtime) {
  runtime other(with_workers(1));
  share_with_an_interrupted_one(settings(), [&](const auto& goes_on) {
    while (goes_on()) other.run([] {});
  });
}

INSTANTIATE_TEST_SUITE_P(workers, preemption, testing::Values(1U, 2U, 4U));

// What an OS thread has for signals.
struct signal_manners {
  pid_t thread = gettid();
  int blocks = 0;  // SIGUSR1
  void* stack = nullptr;
  signal_manners() {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    blocks = sigismember(&mask, SIGUSR1);
    stack_t alternate;
    sigaltstack(nullptr, &alternate);
    stack = alternate.ss_sp;
  }
  bool operator==(const signal_manners&) const = default;
};

// A thread that is interrupted on the OS thread that has called run(), and outlives that, goes on
// on the worker's own, which stays as it was.
TEST(preemption_of_guests, leaves_the_worker_its_signals) {
  if (!detail::ticker::is_safe()) GTEST_SKIP() << "nobody can be interrupted in this program";
  options o = with_workers(1);
  o.preempt_us = 500;
  runtime rt(o);
  const auto of_worker = [&rt] {
    std::optional<signal_manners> found;
    rt.submit([&] { found.emplace(); });
    rt.wait_idle();
    return *found;
  };
  const signal_manners before = of_worker();
  pid_t began_on = 0, ended_on = 0, guest_is = 0;
  std::thread guest([&] {
    guest_is = gettid();
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, nullptr);
    std::atomic<bool> has_begun{false};
    static std::atomic<bool> ends;
    ends = false;
    rt.run([&] {
      thread(preemptible(), [&] {
        began_on = gettid();
        has_begun = true;
        while (!ends.load(std::memory_order_relaxed)) {
        }
        ended_on = gettid();
      }).detach();
      while (!has_begun) this_thread::yield();
      ends = true;
    });
  });
  guest.join();
  rt.wait_idle();
  EXPECT_EQ(began_on, guest_is);
  EXPECT_EQ(ended_on, before.thread);
  EXPECT_EQ(of_worker(), before);
}

}  // namespace
}  // namespace strata::test
