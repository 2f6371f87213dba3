// SPDX-License-Identifier: Apache-2.0
// A completion's last signal, and the failure of its computation: the wait is ended by whichever
// comes first. The signal has come when it has been brought from outside, as by a message, also
// where nobody has taken it in yet.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <random>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "fibers/slot_access.hpp"
#include "os/clock.hpp"
#include "sched/scheduler.hpp"
#include "strata/blocking.hpp"
#include "strata/fiber.hpp"
#include "strata/runtime.hpp"
#include "strata/task_scope.hpp"

namespace strata {
namespace {

// Signals, and fails at once afterwards, when the worker is anywhere between waiting and asleep.
class outsider {
 public:
  explicit outsider(detail::scheduler& s) : workers_(s) {}
  ~outsider() {
    ends_.store(true);
    thread_.join();
  }
  outsider(const outsider&) = delete;
  outsider& operator=(const outsider&) = delete;
  void signal(completion& c) { target_.store(&c); }
  void wait_until_failed() const {
    while (target_.load() != nullptr) std::this_thread::yield();
  }

 private:
  void run() {
    std::minstd_rand random(1);
    while (!ends_.load()) {
      completion* const c = target_.load();
      if (c == nullptr) {
        std::this_thread::yield();
        continue;
      }
      for (auto pauses = random() % pauses_max; pauses != 0; --pauses) os::spin_pause();
      workers_.inject(detail::slot_access::signal(c));
      workers_.fail(std::make_exception_ptr(std::domain_error("a fiber's")));
      target_.store(nullptr);
    }
  }

  static constexpr unsigned pauses_max = 2000;
  detail::scheduler& workers_;
  std::atomic<completion*> target_{nullptr};
  std::atomic<bool> ends_{false};
  std::thread thread_{[this] { run(); }};
};

TEST(last_signal, ends_the_wait_before_a_later_failure_does) {
  constexpr int rounds = 3'000;
  options o;
  o.workers = 1;
  runtime rt(o);
  detail::scheduler* workers = nullptr;
  rt.run([&] { workers = detail::this_worker().owner; });
  outsider other(*workers);
  int told = 0;
  for (int i = 0; i < rounds; ++i) {
    try {
      rt.run([&] {
        const auto c = std::make_unique<completion>();
        other.signal(*c);
        try {
          c->wait();
        } catch (const std::domain_error&) {
          ++told;
        }
      });
    } catch (const std::domain_error&) {
      // The run's, if it has come before its end.
    }
    other.wait_until_failed();
  }
  EXPECT_EQ(told, 0);
}

struct fails : threaded {
  [[noreturn]] void start() { throw std::domain_error("a fiber's"); }
};

// A completion in memory of its own. When it has ended a task lies there that says who runs it.
class watched_completion {
 public:
  watched_completion() : it_(new (memory_) completion) {}
  ~watched_completion() {
    it_->~completion();
    new (memory_) detail::task{&run_late};
  }
  watched_completion(const watched_completion&) = delete;
  watched_completion& operator=(const watched_completion&) = delete;
  completion* operator->() const noexcept { return it_; }

  static inline bool has_run = false;

 private:
  static void run(detail::task&, detail::worker&) { has_run = true; }
  static const char* name() { return "a completion that has ended"; }
  static constexpr detail::task_type run_late{&run, nullptr, &run, &name};

  alignas(completion) static inline std::byte memory_[sizeof(completion)];
  completion* const it_;
};

struct releases {
  std::binary_semaphore& what;
  ~releases() { what.release(); }
};

// Nothing moves while who is to signal is in a call that blocks.
TEST(last_signal, enables_nothing_after_a_failure_was_told) {
  options o;
  o.workers = 1;
  runtime rt(o);
  std::binary_semaphore is_told{0};
  bool caught = false;
  const auto wait_in_vain = [&] {
    watched_completion c;
    task_scope scope;
    const releases when_told{is_told};
    scope.spawn([&] {
      blocking([&] { is_told.acquire(); });
      sync(c->sptr());
    });
    token<fails>();
    c->wait();
  };
  const auto catch_it = [&] {
    try {
      wait_in_vain();
    } catch (const std::domain_error&) {
      caught = true;
    }
  };
  EXPECT_THROW(rt.run(catch_it), std::domain_error);
  rt.wait_idle();
  EXPECT_TRUE(caught);
  EXPECT_FALSE(watched_completion::has_run);
}

}  // namespace
}  // namespace strata
